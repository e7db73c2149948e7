//! The back end of this machine.

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use super::neon::Neon;
use super::portable::Portable;
use super::traits::{Job, Simd};
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};

/// One of the back ends.
#[derive(Clone, Copy)]
pub(crate) enum AnySimd {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon(Neon),
    Portable,
}

impl AnySimd {
    /// The best back end that the processor supports. Builds for measurements select another one
    /// with `--cfg packtok_simd`.
    pub(crate) fn detect() -> Self {
        let all = Self::all();
        let named = match (cfg!(packtok_simd = "avx2"), cfg!(packtok_simd = "portable")) {
            (true, _) => "avx2",
            (_, true) => "portable",
            _ => return all[0],
        };
        let simd = all.into_iter().find(|simd| simd.name() == named);
        simd.expect("the processor has what the build names")
    }

    /// All back ends of the processor, the best first.
    pub(crate) fn all() -> Vec<Self> {
        let mut back_ends = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            back_ends.extend(Avx512::detect().map(Self::Avx512));
            back_ends.extend(Avx2::detect().map(Self::Avx2));
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        back_ends.extend(Neon::detect().map(Self::Neon));
        back_ends.push(Self::Portable);
        back_ends
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Self::Neon(_) => "neon",
            Self::Portable => "portable",
        }
    }

    /// Runs a job on this back end.
    #[inline(always)]
    pub(crate) fn run<J: Job>(self, job: J) -> J::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(simd) => simd.run(job),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => simd.run(job),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Self::Neon(simd) => simd.run(job),
            Self::Portable => Portable.run(job),
        }
    }
}

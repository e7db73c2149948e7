//! The lane of this machine.

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use super::neon::Neon;
use super::portable::Portable;
use super::traits::{Job, Lane};
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};

/// One of the lanes.
#[derive(Clone, Copy)]
pub(crate) enum AnyLane {
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon(Neon),
    Portable,
}

impl AnyLane {
    /// The best lane of the processor. Builds for measurements select another one with `--cfg packtok_lane`.
    pub(crate) fn detect() -> Self {
        let all = Self::all();
        let named = match (cfg!(packtok_lane = "avx2"), cfg!(packtok_lane = "portable")) {
            (true, _) => "avx2",
            (_, true) => "portable",
            _ => return all[0],
        };
        let found = all.into_iter().find(|lane| lane.name() == named);
        found.expect("the processor has what the build names")
    }

    /// All lanes of the processor, the best first.
    pub(crate) fn all() -> Vec<Self> {
        let mut lanes = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            lanes.extend(Avx512::detect().map(Self::Avx512));
            lanes.extend(Avx2::detect().map(Self::Avx2));
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        lanes.extend(Neon::detect().map(Self::Neon));
        lanes.push(Self::Portable);
        lanes
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

    /// Runs a job in this lane.
    #[inline(always)]
    pub(crate) fn run<J: Job>(self, job: J) -> J::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(lane) => lane.run(job),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(lane) => lane.run(job),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Self::Neon(lane) => lane.run(job),
            Self::Portable => Portable.run(job),
        }
    }
}

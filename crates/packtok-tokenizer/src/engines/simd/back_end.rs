//! Declares back ends that need features of the processor.

/// Declares a back end. A value of its type exists only if the processor has the features. Each
/// method of [`Simd`](super::traits::Simd) is an expression that calls functions of the module;
/// the functions may use these features and no others. Methods that call no such function follow
/// in braces.
macro_rules! back_end {
    (
        $(#[$doc:meta])*
        $name:ident, $is_detected:ident [$($feature:tt),+]
        $(fn $method:ident($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)? = $call:expr;)+
        {$($rest:tt)*}
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name(());

        impl $name {
            pub(super) fn detect() -> Option<Self> {
                let has_all = $($is_detected!($feature))&&+;
                has_all.then_some(Self(()))
            }
        }

        impl $crate::engines::simd::Simd for $name {
            #[inline(always)]
            fn run<J: $crate::engines::simd::Job>(self, job: J) -> J::Output {
                $(#[target_feature(enable = $feature)])+
                #[inline(never)]
                fn inner<J: $crate::engines::simd::Job>(simd: $name, job: J) -> J::Output {
                    job.run(simd)
                }
                // SAFETY: a back end exists, so the processor has the features that are enabled above.
                unsafe { inner(self, job) }
            }

            $(
                #[inline(always)]
                fn $method(self, $($argument: $type),*) $(-> $output)? {
                    // SAFETY: a back end exists, so the processor has the features that the functions enable.
                    unsafe { $call }
                }
            )+

            $($rest)*
        }
    };
}

pub(super) use back_end;

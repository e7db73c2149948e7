//! Tables of many megabytes, in huge pages if the system has them.

use std::marker::PhantomData;

use bytemuck::Pod;
use memmap2::MmapMut;

/// Slots, initially all zero.
///
/// Lookups hit random slots; with small pages, nearly each would also miss the TLB. The advice must precede the first
/// write.
pub(super) struct HugeTable<T> {
    map: MmapMut,
    of: PhantomData<T>,
}

impl<T: Pod> HugeTable<T> {
    pub(super) fn new(num_slots: usize) -> Self {
        let map = map(num_slots * size_of::<T>());
        // Without huge pages, lookups are slower and their results the same.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Self {
            map,
            of: PhantomData,
        }
    }

    /// As [`HugeTable::new`], with `with` in every slot instead of zeros.
    pub(super) fn filled(num_slots: usize, with: T) -> Self {
        let mut table = Self::new(num_slots);
        table.all_mut().fill(with);
        table
    }

    #[inline]
    pub(super) fn all(&self) -> &[T] {
        bytemuck::cast_slice(&self.map)
    }

    /// The slots, for lookups without a bounds check.
    #[inline]
    pub(super) fn slots(&self) -> Slots<'_, T> {
        assert!(
            self.all().len().is_power_of_two(),
            "places are found by a mask"
        );
        Slots(self.all())
    }

    #[inline]
    pub(super) fn all_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.map)
    }
}

/// Maps memory. If the system refuses, allocates from the allocator until the allocator fails too,
/// so that the process reports this failure like any other allocation failure. The system does not
/// provide pages that are never written.
fn map(num_bytes: usize) -> MmapMut {
    let refused = |_| {
        let mut allocated = Vec::new();
        loop {
            allocated.push(std::hint::black_box(vec![0_u8; num_bytes]));
        }
    };
    MmapMut::map_anon(num_bytes).unwrap_or_else(refused)
}

/// The slots of a table whose size is a power of two. The high bits of an index are ignored.
#[derive(Debug)]
pub(super) struct Slots<'a, T>(&'a [T]);

impl<T> Clone for Slots<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slots<'_, T> {}

impl<'a, T> Slots<'a, T> {
    /// All slots, a power of two.
    #[inline]
    pub(super) fn all(self) -> &'a [T] {
        self.0
    }

    /// The slot at `number` modulo the number of slots.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(super) fn at(self, number: usize) -> &'a T {
        let slot = number & (self.0.len() - 1);
        // SAFETY: the number of slots is a power of two, which `HugeTable::slots` checks, so the masked index is below
        // it.
        unsafe { self.0.get_unchecked(slot) }
    }
}

#[inline(always)]
pub(super) fn prefetch<T>(slot: &T) {
    #[cfg(target_arch = "x86_64")]
    safe_arch::prefetch_t0(slot);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}

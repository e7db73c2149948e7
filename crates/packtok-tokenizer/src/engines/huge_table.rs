//! Tables of many megabytes, in huge pages where the system has them.

use std::marker::PhantomData;

use bytemuck::Pod;
use memmap2::MmapMut;

/// Places, all zeros to begin with.
///
/// What is looked up is anywhere in the table; with small pages the processor would have to find the page
/// first. The advice must be given before anything is written.
pub(super) struct HugeTable<T> {
    map: MmapMut,
    of: PhantomData<T>,
}

impl<T: Pod> HugeTable<T> {
    pub(super) fn new(num_places: usize) -> Self {
        let map = MmapMut::map_anon(num_places * size_of::<T>())
            .expect("there is memory for a table of words");
        // Where that is not to be had, it is slower and no less right.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Self {
            map,
            of: PhantomData,
        }
    }

    /// The same with something else in every place.
    pub(super) fn filled(num_places: usize, with: T) -> Self {
        let mut table = Self::new(num_places);
        table.all_mut().fill(with);
        table
    }

    /// Takes all of its memory now; what is first written to costs nothing more then.
    pub(super) fn preallocate(&self) {
        // Where the system does not know of that, it is taken when it is written to.
        #[cfg(target_os = "linux")]
        let _ = self.map.advise(memmap2::Advice::PopulateWrite);
    }

    #[inline]
    pub(super) fn all(&self) -> &[T] {
        bytemuck::cast_slice(&self.map)
    }

    /// The same, to be looked up without asking whether a place is one; they must be a power of two.
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

/// The places of a table, by numbers of which only the low bits count.
#[derive(Debug)]
pub(super) struct Slots<'a, T>(&'a [T]);

impl<T> Clone for Slots<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slots<'_, T> {}

impl<'a, T> Slots<'a, T> {
    /// The place of a number.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(super) fn at(self, number: usize) -> &'a T {
        let place = number & (self.0.len() - 1);
        // SAFETY: these are a power of two of places, which `HugeTable::places` asks, so that the mask is below it.
        unsafe { self.0.get_unchecked(place) }
    }
}

/// Has the processor fetch a place, while it is at something else.
#[inline(always)]
pub(super) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    safe_arch::prefetch_t0(place);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

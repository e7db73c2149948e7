//! Best-fit decreasing on lengths: assigns each piece to a bin.

use super::bitset::Bitset;

const NONE: u32 = u32::MAX;

/// Bins of one capacity, reused by each call of [`Bins::place`].
pub(super) struct Bins {
    capacity: usize,
    /// The amounts of room that at least one bin has.
    rooms: Bitset,
    /// By room: the bin that reached it last.
    last_with_room: Vec<u32>,
    /// By bin: the bin that reached the same room before it.
    before: Vec<u32>,
    bin_of_piece: Vec<u32>,
    /// For each length, the start of its pieces in `by_len`, and later their end.
    places: Vec<u32>,
    /// The pieces by ascending length, stable within a length.
    by_len: Vec<u32>,
}

impl Bins {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            rooms: Bitset::new(capacity),
            last_with_room: vec![NONE; capacity],
            before: Vec::new(),
            bin_of_piece: Vec::new(),
            places: vec![0; capacity + 2],
            by_len: Vec::new(),
        }
    }

    /// Number of bins.
    pub(super) fn len(&self) -> usize {
        self.before.len()
    }

    /// The bin of each piece.
    pub(super) fn of_pieces(&self) -> &[u32] {
        &self.bin_of_piece
    }

    /// Assigns pieces of these lengths, each `1..=capacity`, to new bins.
    pub(super) fn place(&mut self, lens: &[u32]) {
        self.clear();
        let longest = lens.iter().max().map_or(0, |&len| len as usize);
        self.sort(lens, longest);
        self.bin_of_piece.resize(lens.len(), NONE);
        for len in (1..=longest).rev() {
            let pieces = self.places[len - 1] as usize..self.places[len] as usize;
            for i in pieces {
                let piece = self.by_len[i] as usize;
                self.bin_of_piece[piece] = self.place_one(len);
            }
        }
    }

    /// Removes all bins. Only the rooms in use are reset, because there may be millions.
    fn clear(&mut self) {
        while let Some(room) = self.rooms.first_from(0) {
            self.rooms.remove(room);
            self.last_with_room[room] = NONE;
        }
        self.before.clear();
    }

    /// Sorts pieces by length. Pieces of length n are then at `places[n - 1]..places[n]`.
    fn sort(&mut self, lens: &[u32], longest: usize) {
        let places = &mut self.places[..longest + 2];
        places.fill(0);
        for &len in lens {
            places[len as usize + 1] += 1;
        }
        let mut sum = 0;
        for place in places {
            sum += *place;
            *place = sum;
        }
        self.by_len.resize(lens.len(), 0);
        for (piece, &len) in (0..).zip(lens) {
            let place = &mut self.places[len as usize];
            self.by_len[*place as usize] = piece;
            *place += 1;
        }
    }

    fn place_one(&mut self, len: usize) -> u32 {
        let (bin, room) = match self.rooms.first_from(len) {
            Some(room) => (self.take(room), room),
            None => {
                self.before.push(NONE);
                (self.before.len() as u32 - 1, self.capacity)
            }
        };
        if room > len {
            self.put(bin, room - len);
        }
        bin
    }

    /// Removes and returns the bin that reached `room` last. At least one bin has this room.
    fn take(&mut self, room: usize) -> u32 {
        let bin = self.last_with_room[room];
        let before = self.before[bin as usize];
        self.last_with_room[room] = before;
        if before == NONE {
            self.rooms.remove(room);
        }
        bin
    }

    fn put(&mut self, bin: u32, room: usize) {
        let before = std::mem::replace(&mut self.last_with_room[room], bin);
        self.before[bin as usize] = before;
        if before == NONE {
            self.rooms.insert(room);
        }
    }
}

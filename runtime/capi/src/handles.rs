//! Handles: numbers in the guise of pointers, which stand for objects in a table.
//!
//! A handle is no address, so that one that is null, closed or of another kind is found out, whatever C does with it.

use std::{
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::errors::Problem;

/// What handles of a kind stand for.
pub(crate) trait Object: Send + Sync + Sized + 'static {
    /// The kind's name in messages.
    const NAME: &'static str;
    /// The kind's number, above 0, which is a part of its handles.
    const KIND: u8;

    /// Returns the table of the kind.
    fn table() -> &'static Table<Self>;
}

/// The objects of a kind.
#[derive(Debug)]
pub(crate) struct Table<T> {
    slots: Mutex<Vec<Slot<T>>>,
    kind: PhantomData<T>,
}

#[derive(Debug)]
struct Slot<T> {
    /// How many objects the slot has had. It is a part of the handle.
    generation: u32,
    object: Option<Arc<T>>,
}

/// The bits of a handle: kind, generation, slot.
const GENERATION_BITS: u32 = 24;
const SLOT_BITS: u32 = 32;

// A handle has 64 bits, as pointers have.
const _: () = assert!(size_of::<usize>() == 8, "the C interface needs pointers of 64 bits");

impl<T: Object> Table<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Mutex::new(Vec::new()), kind: PhantomData }
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot<T>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an object. Returns its handle.
    pub(crate) fn add(&self, object: T) -> usize {
        let mut slots = self.slots();
        let free = slots.iter().position(|slot| slot.object.is_none());
        let index = free.unwrap_or_else(|| {
            slots.push(Slot { generation: 0, object: None });
            slots.len() - 1
        });
        let slot = &mut slots[index];
        slot.generation = (slot.generation + 1) % (1 << GENERATION_BITS);
        slot.object = Some(Arc::new(object));
        (usize::from(T::KIND) << (GENERATION_BITS + SLOT_BITS))
            | ((slot.generation as usize) << SLOT_BITS)
            | index
    }

    /// Returns the object of a handle.
    pub(crate) fn get(&self, handle: usize) -> Result<Arc<T>, Problem> {
        let bad = |found| Problem::Handle { found, expected: T::NAME };
        if handle == 0 {
            return Err(bad("NULL"));
        }
        if handle >> (GENERATION_BITS + SLOT_BITS) != usize::from(T::KIND) {
            return Err(bad("a handle of another kind"));
        }
        let (generation, index) = parts(handle);
        let slots = self.slots();
        let slot = slots.get(index).filter(|slot| slot.generation == generation);
        slot.and_then(|slot| slot.object.clone()).ok_or_else(|| bad("a handle that was closed"))
    }

    /// Takes the object of a handle out of the table. `None` if there is none.
    pub(crate) fn remove(&self, handle: usize) -> Option<Arc<T>> {
        if handle >> (GENERATION_BITS + SLOT_BITS) != usize::from(T::KIND) {
            return None;
        }
        let (generation, index) = parts(handle);
        let mut slots = self.slots();
        let slot = slots.get_mut(index).filter(|slot| slot.generation == generation)?;
        slot.object.take()
    }
}

fn parts(handle: usize) -> (u32, usize) {
    let generation = (handle >> SLOT_BITS) & ((1 << GENERATION_BITS) - 1);
    (generation as u32, handle & ((1 << SLOT_BITS) - 1))
}

/// Declares the table of a kind of objects.
macro_rules! object {
    ($object:ty, $kind:literal, $name:literal) => {
        impl $crate::handles::Object for $object {
            const NAME: &'static str = $name;
            const KIND: u8 = $kind;

            fn table() -> &'static $crate::handles::Table<Self> {
                static TABLE: $crate::handles::Table<$object> = $crate::handles::Table::new();
                &TABLE
            }
        }
    };
}

pub(crate) use object;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct One(u32);
    #[derive(Debug)]
    struct Other;

    object!(One, 200, "a one");
    object!(Other, 201, "another");

    fn message<T>(found: Result<T, Problem>) -> String {
        found.err().unwrap().report().message
    }

    #[test]
    fn a_handle_is_good_until_it_is_closed() {
        let table = One::table();
        let (a, b) = (table.add(One(1)), table.add(One(2)));
        assert_eq!((table.get(a).unwrap().0, table.get(b).unwrap().0), (1, 2));
        let kept = table.get(a).unwrap();
        assert!(table.remove(a).is_some() && table.remove(a).is_none());
        assert_eq!(*kept, One(1));
        assert_eq!(message(table.get(a)), "found a handle that was closed, expected a one");
        // The slot is used again, and the old handle is still bad.
        let c = table.add(One(3));
        assert_eq!(c & 0xffff_ffff, a & 0xffff_ffff);
        assert!(table.get(a).is_err());
        assert_eq!(*table.get(c).unwrap(), One(3));
    }

    #[test]
    fn other_handles_are_refused() {
        let other = Other::table().add(Other);
        assert_eq!(message(One::table().get(0)), "found NULL, expected a one");
        assert_eq!(message(One::table().get(other)), "found a handle of another kind, expected a one");
        assert!(One::table().remove(other).is_none() && One::table().remove(0).is_none());
        assert!(Other::table().get(other).is_ok());
        for bad in [1, usize::MAX, 200 << 56, (200 << 56) | 0xffff_ffff, other + 1] {
            assert!(One::table().get(bad).is_err());
        }
    }
}

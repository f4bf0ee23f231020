//! The order in which blocks, warps and lanes take their turns, which nothing promises on a GPU.

use std::str::FromStr;

/// Blocks that are under way at once, as far as their order is not given.
const RESIDENT: usize = 4;
/// The most instructions that a warp runs before another one has its turn.
const SLICE_MAX: usize = 400;

/// What decides who runs first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Lower numbers run first, and a warp runs as far as it can.
    Forward,
    /// Higher numbers run first, and a warp runs as far as it can.
    Reverse,
    /// What looks random takes turns. The same number gives the same order.
    Seed(u64),
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "forward" => Ok(Self::Forward),
            "reverse" => Ok(Self::Reverse),
            _ => text
                .parse()
                .map(Self::Seed)
                .map_err(|_| format!("found {text}, expected forward, reverse or a number")),
        }
    }
}

/// What makes the choices of an order.
#[derive(Debug)]
pub(super) struct Turns {
    order: Order,
    state: u64,
}

impl Turns {
    pub(super) fn new(order: Order) -> Self {
        let seed = if let Order::Seed(seed) = order { seed } else { 0 };
        // xorshift stays at zero, and begins slowly from small numbers.
        let state = (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xd134_2543_de82_ef95) | 1;
        Self { order, state }
    }

    fn random(&mut self) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 20) as usize
    }

    /// Returns which of so many, at least one, has its turn.
    pub(super) fn choose(&mut self, count: usize) -> usize {
        match self.order {
            Order::Forward => 0,
            Order::Reverse => count - 1,
            Order::Seed(_) => self.random() % count,
        }
    }

    /// Returns the numbers below `count` from the last one that begins to the first.
    pub(super) fn blocks(&mut self, count: usize) -> Vec<usize> {
        let mut numbers: Vec<_> = (0..count).collect();
        match self.order {
            Order::Forward => numbers.reverse(),
            Order::Reverse => {}
            Order::Seed(_) => {
                for last in (1..count).rev() {
                    numbers.swap(last, self.random() % (last + 1));
                }
            }
        }
        numbers
    }

    /// Returns how many blocks are under way at once.
    pub(super) fn resident(&self) -> usize {
        match self.order {
            Order::Forward | Order::Reverse => 1,
            Order::Seed(_) => RESIDENT,
        }
    }

    /// Returns how many instructions a warp has for its turn.
    pub(super) fn slice(&mut self) -> u64 {
        match self.order {
            Order::Forward | Order::Reverse => u64::MAX,
            Order::Seed(_) => 1 + (self.random() % SLICE_MAX) as u64,
        }
    }

    /// Returns what the numbers of lanes are combined with, by xor, for their order.
    pub(super) fn lanes(&mut self) -> usize {
        match self.order {
            Order::Forward => 0,
            Order::Reverse => 31,
            Order::Seed(_) => self.random() % 32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_names_and_are_repeated() {
        assert_eq!((" forward".parse::<Order>().is_err(), "reverse".parse()), (true, Ok(Order::Reverse)));
        assert_eq!("7".parse(), Ok(Order::Seed(7)));
        let blocks = |order| Turns::new(order).blocks(100);
        assert_eq!(blocks(Order::Seed(7)), blocks(Order::Seed(7)));
        assert_ne!(blocks(Order::Seed(7)), blocks(Order::Seed(8)));
        let mut sorted = blocks(Order::Seed(7));
        sorted.sort_unstable();
        assert_eq!(sorted, blocks(Order::Reverse));
    }
}

//! Memoization of the last result: consecutive acknowledgments often have equal inputs.

/// Last input and result of a pure function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memo<Input, Result> {
    last: Option<(Input, Result)>,
}

impl<Input: Copy + PartialEq, Result: Copy> Memo<Input, Result> {
    /// Returns the result for `input`, computed only if `input` differs from the last input.
    #[inline(always)]
    pub(super) fn get(&mut self, input: Input, compute: fn(&Input) -> Result) -> Result {
        match self.last {
            Some((last, result)) if last == input => result,
            _ => self.recompute(input, compute),
        }
    }

    #[cold]
    #[inline(never)]
    fn recompute(&mut self, input: Input, compute: fn(&Input) -> Result) -> Result {
        let result = compute(&input);
        self.last = Some((input, result));
        result
    }
}

impl<Input, Result> Default for Memo<Input, Result> {
    fn default() -> Self {
        Self { last: None }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static COMPUTATIONS: Cell<u32> = const { Cell::new(0) };
    }

    fn double(number: &u32) -> u32 {
        COMPUTATIONS.set(COMPUTATIONS.get() + 1);
        2 * number
    }

    #[test]
    fn an_equal_input_is_computed_once() {
        let mut doubled = Memo::default();
        let results = [3, 3, 4, 3].map(|number| doubled.get(number, double));
        assert_eq!(results, [6, 6, 8, 6]);
        assert_eq!(COMPUTATIONS.get(), 3);
    }
}

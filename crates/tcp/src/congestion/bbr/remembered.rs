//! Memoization of the last result: consecutive acknowledgments often have equal inputs.

/// Last input and result of a pure function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remembered<Of, Result> {
    last: Option<(Of, Result)>,
}

impl<Of: Copy + PartialEq, Result: Copy> Remembered<Of, Result> {
    /// Returns the result for `of`, computed only if `of` differs from the last input.
    #[inline(always)]
    pub(super) fn get(&mut self, of: Of, work_out: fn(&Of) -> Result) -> Result {
        match self.last {
            Some((last, result)) if last == of => result,
            _ => self.anew(of, work_out),
        }
    }

    #[cold]
    #[inline(never)]
    fn anew(&mut self, of: Of, work_out: fn(&Of) -> Result) -> Result {
        let result = work_out(&of);
        self.last = Some((of, result));
        result
    }
}

impl<Of, Result> Default for Remembered<Of, Result> {
    fn default() -> Self {
        Self { last: None }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static WORKED_OUT: Cell<u32> = const { Cell::new(0) };
    }

    fn double(number: &u32) -> u32 {
        WORKED_OUT.set(WORKED_OUT.get() + 1);
        2 * number
    }

    #[test]
    fn the_same_is_worked_out_once() {
        let mut doubled = Remembered::default();
        let results = [3, 3, 4, 3].map(|number| doubled.get(number, double));
        assert_eq!(results, [6, 6, 8, 6]);
        assert_eq!(WORKED_OUT.get(), 3);
    }
}

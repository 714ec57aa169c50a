//! Types for a congestion control algorithm of your own, to add to
//! [`CustomControls`](crate::CustomControls).

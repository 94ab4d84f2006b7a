//! Real runs, seen from their first event to their last.

//! Pictures of the terminal UI for the guide.

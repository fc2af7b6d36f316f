//! What Python source says: parsed by tree-sitter, never executed.

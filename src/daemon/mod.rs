//! What testwright serves to other programs. So far: the tools, over MCP.

pub mod mcp;

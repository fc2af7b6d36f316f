//! The toolbox: MCP on stdio for one workspace.

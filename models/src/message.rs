//! Messages of a conversation, in a format independent of providers, because trajectories are stored for
//! years.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// A message of a conversation, by the role of its author.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// Instructions to the model.
    System {
        /// Text of the message.
        content: String,
    },
    /// A message to the model.
    User {
        /// Text of the message.
        content: String,
    },
    /// A reply of the model.
    Assistant {
        /// Text of the reply; may be empty.
        content: String,
        /// Tool calls of the reply.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// Further fields of the reply that the service expects back, such as reasoning.
        #[serde(default, skip_serializing_if = "ExtraFields::is_empty")]
        #[schemars(with = "serde_json::Map<String, Value>")]
        extra: ExtraFields,
    },
    /// Result of one call.
    Tool(ToolResult),
}

/// A tool call that could be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Id, unique in a conversation.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments by name, as a JSON object.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub arguments: Arguments,
    /// Further fields of the call that the service expects back, such as a signature.
    #[serde(default, skip_serializing_if = "ExtraFields::is_empty")]
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub extra: ExtraFields,
}

impl ToolCall {
    /// Creates a call without extra fields.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<Arguments>,
    ) -> Self {
        ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            extra: ExtraFields::default(),
        }
    }
}

/// Fields of a service that have no meaning here. They are sent back unchanged, as text for the same reason
/// as [`Arguments`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtraFields(Box<str>);

impl ExtraFields {
    /// Returns whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the length as JSON.
    pub fn length(&self) -> usize {
        self.0.len()
    }

    /// Returns the fields.
    pub fn fields(&self) -> Map<String, Value> {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl From<Map<String, Value>> for ExtraFields {
    fn from(fields: Map<String, Value>) -> Self {
        match fields.is_empty() {
            true => ExtraFields::default(),
            false => ExtraFields(Value::Object(fields).to_string().into()),
        }
    }
}

impl Serialize for ExtraFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.fields().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ExtraFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(ExtraFields::from)
    }
}

/// The arguments of a call: a JSON object, stored as text. A long conversation has hundreds of them, and a
/// tree would take several times the memory.
#[derive(Clone)]
pub struct Arguments(Box<str>);

impl Arguments {
    /// Returns the arguments as a JSON value.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// Returns compact JSON.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Value> for Arguments {
    fn from(value: Value) -> Self {
        Arguments(value.to_string().into())
    }
}

/// Compares arguments without regard to the order of keys.
impl PartialEq for Arguments {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.value() == other.value()
    }
}

impl PartialEq<Value> for Arguments {
    fn eq(&self, other: &Value) -> bool {
        self.value() == *other
    }
}

impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Arguments::from)
    }
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// [`ToolCall::id`] of the call.
    pub id: String,
    /// Content that the model reads.
    pub content: String,
}

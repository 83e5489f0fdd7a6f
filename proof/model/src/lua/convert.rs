//! Conversions between Lua values and replies.

use mlua::{Lua, MultiValue, Table, Value};

use crate::redis::{Reply, general, truncated};

const NOT_WORDS: &str = "ERR Lua redis lib command arguments must be strings or integers";
const NO_WORDS: &str = "ERR Please specify at least one argument for this redis lib call";

/// The words of a command, from the arguments of `redis.call`.
pub(super) fn words(values: &MultiValue) -> Result<Vec<Vec<u8>>, &'static str> {
    if values.is_empty() {
        return Err(NO_WORDS);
    }
    values
        .iter()
        .map(|value| word(value).ok_or(NOT_WORDS))
        .collect()
}

fn word(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        // Lua 5.1 has only floating-point numbers; the binding turns whole ones into integers.
        #[allow(clippy::cast_precision_loss, reason = "it was a floating-point number")]
        Value::Integer(number) => Some(general(*number as f64).into_bytes()),
        Value::Number(number) => Some(general(*number).into_bytes()),
        _ => None,
    }
}

/// A list of strings, for `KEYS` and `ARGV`.
pub(super) fn strings(lua: &Lua, list: &[Vec<u8>]) -> mlua::Result<Table> {
    let texts: Vec<_> = list
        .iter()
        .map(|text| lua.create_string(text))
        .collect::<Result<_, _>>()?;
    lua.create_sequence_from(texts)
}

/// A reply as a script sees it.
pub(super) fn to_lua(lua: &Lua, reply: &Reply) -> mlua::Result<Value> {
    let single = |field: &str, text: &str| {
        let table = lua.create_table_with_capacity(0, 1)?;
        table.raw_set(field, text)?;
        Ok(Value::Table(table))
    };
    match reply {
        Reply::Nil => Ok(Value::Boolean(false)),
        Reply::Int(number) => Ok(Value::Integer(*number)),
        Reply::Bulk(bytes) => Ok(Value::String(lua.create_string(bytes)?)),
        Reply::Status(text) => single("ok", text),
        Reply::Error(text) => single("err", text),
        Reply::Array(items) => {
            let items: Vec<Value> = items
                .iter()
                .map(|item| to_lua(lua, item))
                .collect::<Result<_, _>>()?;
            Ok(Value::Table(lua.create_sequence_from(items)?))
        }
    }
}

/// Turns the return value of a script into a reply.
pub(super) fn reply(value: &Value) -> mlua::Result<Reply> {
    match value {
        Value::String(text) => Ok(Reply::bulk(text.as_bytes().to_vec())),
        Value::Boolean(true) => Ok(Reply::Int(1)),
        Value::Integer(number) => Ok(Reply::Int(*number)),
        Value::Number(number) => Ok(Reply::Int(truncated(*number))),
        Value::Table(table) => list(table),
        _ => Ok(Reply::Nil),
    }
}

fn list(table: &Table) -> mlua::Result<Reply> {
    if let Value::String(text) = table.raw_get("err")? {
        return Ok(Reply::Error(one_line(&text.to_string_lossy())));
    }
    if let Value::String(text) = table.raw_get("ok")? {
        return Ok(Reply::Status(one_line(&text.to_string_lossy())));
    }
    let mut items = Vec::new();
    loop {
        match table.raw_get(items.len() + 1)? {
            Value::Nil => return Ok(Reply::Array(items)),
            value => items.push(reply(&value)?),
        }
    }
}

/// Turns a raised error into an error reply. A server adds the place in the script; the model does
/// not.
pub(super) fn failure(value: &Value) -> mlua::Result<Reply> {
    let text = match value {
        Value::Table(table) => table.raw_get::<Option<mlua::LuaString>>("err")?,
        Value::String(text) => {
            let text = text.to_string_lossy();
            return Ok(Reply::Error(format!("ERR {}", one_line(&text))));
        }
        _ => None,
    };
    let text = text.map_or_else(
        || "ERR unknown error".to_owned(),
        |text| text.to_string_lossy(),
    );
    Ok(Reply::Error(one_line(&text)))
}

fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

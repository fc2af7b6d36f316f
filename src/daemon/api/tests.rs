use super::*;

#[test]
fn the_description_is_what_clients_were_told() {
    let description = serde_json::to_string_pretty(&description()).unwrap();
    insta::assert_snapshot!(description);
}

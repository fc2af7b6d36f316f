#![allow(clippy::unwrap_used)]
use super::*;

fn peer(n: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, n])
}

fn is_closed(slot: &Slot) -> bool {
    lock(&slot.slots.open)[&slot.id].closing
}

#[test]
fn longest_idle_of_busiest_client_is_closed() {
    let slots = Slots::new(4);
    let quiet = Arc::new(slots.take(peer(1)).unwrap());
    let first = Arc::new(slots.take(peer(2)).unwrap());
    let second = Arc::new(slots.take(peer(2)).unwrap());
    let third = Arc::new(slots.take(peer(2)).unwrap());
    drop(first.begin_request());
    let fourth = slots.take(peer(2)).unwrap();
    assert!(is_closed(&second));
    assert!(
        ![&quiet, &first, &third]
            .into_iter()
            .any(|slot| is_closed(slot))
    );
    drop((second, fourth));
    assert_eq!(lock(&slots.open).len(), 3);
}

#[test]
fn ipv6_network_is_one_client() {
    let slots = Slots::new(3);
    let take = |address: &str| Arc::new(slots.take(address.parse().unwrap()).unwrap());
    let quiet = take("2001:db8:0:2::1");
    let greedy = [take("2001:db8:0:1::1"), take("2001:db8:0:1:ffff::2")];
    let _new = take("2001:db8:0:3::1");
    assert!(!is_closed(&quiet));
    assert!(is_closed(&greedy[0]));
    let client = |address: &str| Client::new(address.parse().unwrap());
    assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
    assert_ne!(client("::ffff:192.0.2.1"), client("::ffff:192.0.2.2"));
    assert_ne!(client("2001:db8:0:1::1"), client("2001:db8:0:2::1"));
}

#[test]
fn busy_connection_yields_to_smaller_client() {
    let slots = Slots::new(3);
    let held_slots: Vec<_> = (0..3)
        .map(|_| Arc::new(slots.take(peer(1)).unwrap()))
        .collect();
    let requests: Vec<_> = held_slots.iter().map(Slot::begin_request).collect();
    assert!(slots.take(peer(1)).is_none());
    let other = Arc::new(slots.take(peer(2)).unwrap());
    assert!(is_closed(&held_slots[0]));
    let _busy = other.begin_request();
    assert!(slots.take(peer(2)).is_none());
    drop(requests);
    assert!(slots.take(peer(2)).is_some());
}

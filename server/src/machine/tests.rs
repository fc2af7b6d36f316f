use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::*;

/// Uses a runtime with one thread: a check that blocks it would hang the test.
#[tokio::test]
async fn hanging_check_runs_once_and_blocks_no_task() {
    let machine = MachineHealth {
        check_timeout: Duration::from_millis(50),
        ..MachineHealth::new(Vec::new())
    };
    let begun = Arc::new(AtomicUsize::new(0));
    let (answer, disk) = mpsc::channel();
    let disk = Arc::new(Mutex::new(disk));
    let check = || {
        let (begun, disk) = (begun.clone(), disk.clone());
        machine.check_by(move || {
            begun.fetch_add(1, Ordering::Relaxed);
            let disk = lock(&disk);
            disk.recv().ok().flatten()
        })
    };
    assert_eq!(check().await, None);
    assert_eq!(tokio::join!(check(), check()), (None, None));
    assert_eq!(begun.load(Ordering::Relaxed), 1);
    let machine_checks = machine.checks.clone();
    let last = || lock(&machine_checks).last;
    assert_eq!(answer.send(Some(Shortage::Disk)), Ok(()));
    while last().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The next check hangs as well: the last known result is returned.
    assert_eq!(check().await, Some(Shortage::Disk));
    assert_eq!(answer.send(None), Ok(()));
    while last().is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn pauses_grow_until_job_succeeds() {
    let machine = MachineHealth::new(Vec::new());
    let length = |machine: &MachineHealth| {
        let pause = lock(&machine.pause);
        pause.as_ref().map(|pause| pause.length)
    };
    let end_pause = |machine: &MachineHealth| {
        let mut pause = lock(&machine.pause);
        if let Some(pause) = &mut *pause {
            pause.until = Instant::now();
        }
    };
    assert_eq!(machine.shortage(), None);
    machine.begin_pause(Shortage::Disk);
    machine.begin_pause(Shortage::Memory);
    assert_eq!(machine.shortage(), Some(Shortage::Disk));
    assert_eq!(length(&machine), Some(FIRST_PAUSE));
    for _ in 0..10 {
        end_pause(&machine);
        assert_eq!(machine.shortage(), None);
        machine.begin_pause(Shortage::Disk);
    }
    assert_eq!(length(&machine), Some(MAX_PAUSE));
    machine.end_pauses();
    machine.begin_pause(Shortage::Disk);
    assert_eq!(length(&machine), Some(FIRST_PAUSE));
}

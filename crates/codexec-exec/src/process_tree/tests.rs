use super::*;

#[test]
fn res_2_whatever_a_process_calls_itself_it_is_counted() {
    let own = i32::try_from(std::process::id()).unwrap();
    for name in [&b"plain"[..], b"\xff\xfe", b") 1 2 3 (", b"Rss\nAnon:"] {
        fs::write("/proc/self/comm", name).unwrap();
        assert!(own_memory_bytes(&ProcFile::open(own, "status").unwrap()) > 0, "{name:?}");
        let time = CpuTime::parse(&ProcFile::open(own, "stat").unwrap()).unwrap();
        let uptime = fs::read_to_string("/proc/uptime").unwrap();
        let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        let started = time.start as f64 / TICKS_PER_SECOND as f64;
        assert!(started > 0.0 && started <= uptime, "{name:?}: {started} of {uptime}");
    }
}

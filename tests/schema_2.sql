-- The schedule database as version 2 made it, with one measurement and one decision.
CREATE TABLE st_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "st_meta" VALUES('schema','2');
CREATE TABLE st_workload (
        key TEXT PRIMARY KEY, machine TEXT NOT NULL, kernel TEXT NOT NULL, formats TEXT NOT NULL, dtype TEXT NOT NULL,
        target TEXT NOT NULL, threads INTEGER NOT NULL);
INSERT INTO "st_workload" VALUES('9ce504eb5443ca33','abcd','T0(i0) = T1(i0,i1) * T2(i1)','dense | dense, compressed | dense','float64','cpu',2);
CREATE TABLE st_input (key TEXT PRIMARY KEY, name TEXT NOT NULL, content TEXT NOT NULL);
INSERT INTO "st_input" VALUES('a24f5aadf7b69eb2','HB/494_bus','{"extents": [["i0", 100], ["i1", 80]], "features": [["nnz:T1", 10.5], ["extent:i0", 6.64]], "pattern": "feed"}');
CREATE TABLE st_environment (key TEXT PRIMARY KEY, content TEXT NOT NULL);
INSERT INTO "st_environment" VALUES('e16ea2c687cc889f','{"processor": "test", "cores": 2}');
CREATE TABLE st_measurement (
        key TEXT PRIMARY KEY, workload TEXT NOT NULL REFERENCES st_workload (key), input TEXT NOT NULL REFERENCES st_input (key),
        environment TEXT NOT NULL REFERENCES st_environment (key), campaign TEXT NOT NULL, role TEXT NOT NULL,
        schedule TEXT NOT NULL, status TEXT NOT NULL, seconds DOUBLE PRECISION, low DOUBLE PRECISION, high DOUBLE PRECISION,
        samples TEXT NOT NULL, disturbed INTEGER NOT NULL, origin TEXT NOT NULL, parameters TEXT NOT NULL, compiler TEXT NOT NULL,
        flags TEXT NOT NULL, message TEXT NOT NULL, source TEXT NOT NULL, build_seconds DOUBLE PRECISION, policy TEXT NOT NULL,
        load DOUBLE PRECISION, code TEXT NOT NULL, created TEXT NOT NULL);
INSERT INTO "st_measurement" VALUES('94a0ad9d48e95ae9','9ce504eb5443ca33','a24f5aadf7b69eb2','e16ea2c687cc889f','c1','trial','parallelize(i0, cpu_thread, no_races)','ok',0.002,NULL,NULL,'[[0.002, 0.002, 0.0, 0.0, 0.0, 0.0, 1.0], [0.0021, 0.0021, 0.0, 0.0, 0.0, 0.0, 1.0]]',0,'','{}','','','','0123',0.2,'{"warm_up": 1}',0.25,'0.1.0','2026-11-21T06:00:00.000+00:00');
CREATE TABLE st_decision (
        key TEXT PRIMARY KEY, workload TEXT NOT NULL REFERENCES st_workload (key), input TEXT NOT NULL REFERENCES st_input (key),
        environment TEXT NOT NULL REFERENCES st_environment (key), campaign TEXT NOT NULL, schedule TEXT NOT NULL,
        seconds DOUBLE PRECISION NOT NULL, default_seconds DOUBLE PRECISION NOT NULL, speedup_low DOUBLE PRECISION NOT NULL,
        speedup_high DOUBLE PRECISION NOT NULL, ties TEXT NOT NULL, policy TEXT NOT NULL, compiler TEXT NOT NULL, flags TEXT NOT NULL,
        code TEXT NOT NULL, created TEXT NOT NULL);
INSERT INTO "st_decision" VALUES('74f3047a2597760d','9ce504eb5443ca33','a24f5aadf7b69eb2','e16ea2c687cc889f','c1','parallelize(i0, cpu_thread, no_races)',0.002,0.004,1.9,2.1,'[]','{}','','','0.1.0','2026-11-21T06:00:01.000+00:00');
CREATE INDEX st_measurement_workload ON st_measurement (workload, input);
CREATE INDEX st_decision_workload ON st_decision (workload);

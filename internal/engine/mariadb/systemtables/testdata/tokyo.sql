INSERT INTO mysql.time_zone_transition_type VALUES (@zone,0,32400,0,'JST'),(@zone,1,36000,1,'JDT');
INSERT INTO mysql.time_zone_transition VALUES (@zone,-683802000,1),(@zone,-672310800,0),(@zone,-654771600,1),(@zone,-640861200,0),(@zone,-620298000,1),(@zone,-609411600,0),(@zone,-588848400,1),(@zone,-577962000,0);

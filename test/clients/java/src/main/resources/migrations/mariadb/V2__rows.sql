CALL fill();
DROP FUNCTION IF EXISTS never_made;
CREATE FUNCTION made_and_dropped() RETURNS integer RETURN 1;
DROP FUNCTION made_and_dropped;
DROP PROCEDURE IF EXISTS never_made;

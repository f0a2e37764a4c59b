CREATE OR REPLACE VIEW totals AS SELECT name, twice(seen) AS doubled FROM items;

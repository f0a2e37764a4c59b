"""A client that writes meanwhile."""

import threading

import engines


class Writer(threading.Thread):
    """Inserts rising numbers and remembers which were acknowledged."""

    def __init__(self, db, table="kept"):
        super().__init__()
        self.db, self.table, self.end, self.acknowledged, self.error = db, table, threading.Event(), [], None

    def run(self):
        try:
            with self.db.connect() as connection:
                n = 1000
                while not self.end.is_set():
                    engines.query(connection, f"INSERT INTO {self.table} VALUES ({n})")
                    self.acknowledged.append(n)
                    n += 1
        except Exception as e:  # shown by stop
            self.error = e

    def stop(self):
        self.end.set()
        self.join()
        if self.error:
            raise self.error

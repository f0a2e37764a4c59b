package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kurabe"
	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// Codes of what can happen to a slot meanwhile: it is gone, it is there, or somebody uses it.
const (
	undefinedObject = "42704"
	duplicateObject = "42710"
	objectInUse     = "55006"
)

// slotPoll is how often it is tried to drop a slot whose session is about to end.
const slotPoll = 5 * time.Millisecond

// Followers implements engine.Replicator. Only slots of members' names are touched. What a
// slot holds back is bounded for each (max_slot_wal_keep_size): a follower that stays away
// for long is cloned again, and fills no disk.
func (d *Driver) Followers(ctx context.Context, i engine.Instance) error {
	if i.Role == nil {
		return nil
	}
	err := d.withAdmin(ctx, i, func(conn *pgx.Conn) error {
		names, err := memberSlots(ctx, conn)
		if err != nil {
			return err
		}
		for _, name := range names {
			if slices.ContainsFunc(i.Role.Followers, func(id kurabe.InstanceID) bool { return memberName(i.Instance.Owner(), id) == name }) {
				continue
			}
			if err := dropMember(ctx, conn, name); err != nil {
				return fmt.Errorf("drop slot %s: %w", name, err)
			}
		}
		return makeSlots(ctx, conn, i)
	})
	if err != nil {
		return fmt.Errorf("slots of followers: %w", err)
	}
	return nil
}

// memberSlots are the names of slots that members have.
func memberSlots(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	rows, err := conn.Query(ctx, "SELECT slot_name::text FROM pg_catalog.pg_replication_slots WHERE slot_type = 'physical'")
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return slices.DeleteFunc(names, func(name string) bool { return !followerForm.MatchString(name) }), err
}

// makeSlots makes those that are missing.
func makeSlots(ctx context.Context, conn *pgx.Conn, i engine.Instance) error {
	for _, id := range i.Role.Followers {
		name := memberName(i.Instance.Owner(), id)
		if err := makeSlot(ctx, conn, name); err != nil {
			return fmt.Errorf("make slot %s: %w", name, err)
		}
	}
	return nil
}

// makeSlot has the log held back from the last checkpoint on, and not from when a follower
// first comes. The writer's worker and that of a follower which is to be cloned make the same
// one, each when it gets round to it.
func makeSlot(ctx context.Context, conn *pgx.Conn, name string) error {
	found, err := exists(ctx, conn, "SELECT FROM pg_catalog.pg_replication_slots WHERE slot_name = $1", name)
	if err != nil || found {
		return err
	}
	_, err = conn.Exec(ctx, "SELECT pg_catalog.pg_create_physical_replication_slot($1, true, false)", name)
	if answer := (*pgconn.PgError)(nil); errors.As(err, &answer) && answer.Code == duplicateObject {
		return nil
	}
	return err
}

// dropMember ends the session of a member that is none any more, and drops its slot. The
// member may come back in between, if the rules that let it in are still in force for it.
func dropMember(ctx context.Context, conn *pgx.Conn, name string) error {
	ticker := time.NewTicker(slotPoll)
	defer ticker.Stop()
	for {
		_, err := conn.Exec(ctx, `SELECT pg_catalog.pg_terminate_backend(active_pid)
			FROM pg_catalog.pg_replication_slots WHERE slot_name = $1 AND active_pid IS NOT NULL`, name)
		if err == nil {
			_, err = conn.Exec(ctx, `SELECT pg_catalog.pg_drop_replication_slot(slot_name)
				FROM pg_catalog.pg_replication_slots WHERE slot_name = $1`, name)
		}
		answer := (*pgconn.PgError)(nil)
		switch {
		case err == nil, errors.As(err, &answer) && answer.Code == undefinedObject:
			return nil
		case answer == nil || answer.Code != objectInUse:
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("its session does not end: %w", context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

// slotDir has a folder for each slot.
const slotDir = "pg_replslot"

// dropSlots empties a copied data folder of them: a slot of the source would hold
// back the log of whoever comes after it, for a reader that does not know it.
func dropSlots(dataDir string) error {
	root, err := volume.OpenRoot(dataDir)
	if err != nil {
		return fmt.Errorf("drop slots: %w", err)
	}
	defer root.Close()
	entries, err := root.ReadDir(slotDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, root.RemoveAll(filepath.Join(slotDir, e.Name())))
	}
	if err != nil {
		return fmt.Errorf("drop slots: %w", err)
	}
	return nil
}

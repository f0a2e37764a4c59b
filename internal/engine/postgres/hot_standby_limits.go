package postgres

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"kurabe/internal/engine"
	"kurabe/internal/volume"
)

// floors are what a server that follows must not have less of than the one that wrote the
// log, with the server's own defaults (manual, "Administrator's Overview" of hot standby).
var floors = map[string]int{
	"max_connections": 100, "max_locks_per_transaction": 64, "max_prepared_transactions": 0, "max_wal_senders": 10, "max_worker_processes": 8,
}

// optionsFile is where a server notes the arguments that it was started with.
const optionsFile = "postmaster.opts"

// floors are for a server that may not start with less of some settings than the data wants. A follower that has not replayed yet that its writer has
// less of something now, must start with as much as before. Its control file says how much
// that is, as of what it has replayed. One that was killed replays some of that again, and
// may meet settings of long before: it starts with what it ran with when it replayed them
// first, which is why every follower is told all of them as arguments.
//
// One whose data was restored is no follower: nobody reads while it recovers, so it needs room
// for the prepared transactions of its source and for nothing else. It has that room until its
// next start, if its own parameters say less.
func (d *Driver) floors(ctx context.Context, i engine.Instance) ([]string, error) {
	follows := d.IsFollower(i.Home)
	if !follows && !i.Fresh {
		return nil, nil
	}
	c, err := ownControl(ctx, i)
	if err != nil {
		return nil, err
	}
	if !follows {
		return preparedArgs(i, c), nil
	}
	var before string
	if c.state != controlShutDownFollower && c.state != controlShutDown {
		text, err := volume.ReadFile(filepath.Join(i.Home.DataDir(), optionsFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		before = string(text)
	}
	return floorArgs(i, c, before), nil
}

// preparedFloor is the one that recovery needs whether or not anybody reads meanwhile
// (RestoreTwoPhaseData and PrescanPreparedTransactions of the server).
const preparedFloor = "max_prepared_transactions"

// preparedArgs are none where the parameters of the instance have room enough.
func preparedArgs(i engine.Instance, c control) []string {
	need, err := strconv.Atoi(c.settings[preparedFloor])
	own, _ := strconv.Atoi(i.Settings[preparedFloor]) // not set: the server's default is 0
	if err != nil || need <= own {
		return nil
	}
	return []string{"-c", preparedFloor + "=" + strconv.Itoa(need)}
}

// optionForm is one of floorArgs as the server notes it.
var optionForm = regexp.MustCompile(`"-c" "([a-z_]+)=([0-9]+)"`)

// floorArgs are the largest of what the assignment, the control file and the arguments of
// the start before say.
func floorArgs(i engine.Instance, c control, before string) []string {
	most := maps.Clone(floors)
	for name := range most {
		if n, err := strconv.Atoi(i.Settings[name]); err == nil {
			most[name] = n
		}
	}
	for _, l := range plumbing(i) {
		if n, err := strconv.Atoi(l.value); err == nil && floored(l.name) {
			most[l.name] = n
		}
	}
	raise := func(name, value string) {
		if n, err := strconv.Atoi(value); err == nil && floored(name) {
			most[name] = max(most[name], n)
		}
	}
	for name, value := range c.settings {
		raise(name, value)
	}
	for _, m := range optionForm.FindAllStringSubmatch(before, -1) {
		raise(m[1], m[2])
	}
	var args []string
	for _, name := range slices.Sorted(maps.Keys(most)) {
		args = append(args, "-c", name+"="+strconv.Itoa(most[name]))
	}
	return args
}

func floored(name string) bool {
	_, is := floors[name]
	return is
}

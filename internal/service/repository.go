package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/logkey"
	"kurabe/internal/volume"
)

// repositoryFlags say where backups go.
type RepositoryConfig struct{ Location, KeyFile string }

// place is the location as blob takes it: folders are absolute.
func (f RepositoryConfig) place(data string) (string, error) {
	switch {
	case f.Location == "":
		return filepath.Join(data, "repository"), nil
	case strings.Contains(f.Location, "://"):
		return f.Location, nil
	}
	return filepath.Abs(f.Location)
}

// key loads the key, nil for none. Its file may be on a disk that comes later.
func (f RepositoryConfig) key() (*blob.Key, error) {
	if f.KeyFile == "" {
		return nil, nil
	}
	return blob.LoadKey(f.KeyFile)
}

// Identify opens the repository and tells its id.
func (f RepositoryConfig) Identify(ctx context.Context) (string, error) {
	location, err := f.place("")
	if err != nil {
		return "", err
	}
	key, err := f.key()
	if err != nil {
		return "", err
	}
	open, err := blob.Open(ctx, location, blob.Options{Key: key})
	if err != nil {
		return "", err
	}
	return open.ID, nil
}

// repository is the service's repository of backups. It is opened in the background
// and tried again while it cannot be: databases do not wait for it. Once it is open,
// each call to it finds out by itself if it still is the same.
type repository struct {
	flags    RepositoryConfig
	location string
	memory   string // file that remembers which repository is at which location
	log      *slog.Logger

	mu   sync.Mutex // guards the rest
	open *blob.Repository
	err  error // why it is not open
}

var errOpening = errors.New("the repository of backups is being opened")

// newRepository refuses a location that can never be one; whatever else may be wrong
// may pass.
func newRepository(f RepositoryConfig, data string, log *slog.Logger) (*repository, error) {
	location, err := f.place(data)
	if err != nil {
		return nil, fmt.Errorf("--backup-repository: %w", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel() // only the text is looked at
	var wrong *blob.LocationError
	if _, err := blob.Open(ended, location, blob.Options{}); errors.As(err, &wrong) {
		return nil, fmt.Errorf("--backup-repository: %w", wrong)
	}
	return &repository{flags: f, location: location, memory: filepath.Join(data, "repositories.json"), log: log, err: errOpening}, nil
}

// Store gives the repository, or says why there is none just now.
func (r *repository) Store() (blob.Store, error) {
	open, err := r.get()
	if err != nil {
		return nil, err
	}
	return open, nil
}

func (r *repository) get() (*blob.Repository, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open, r.err
}

// forSnapshots says whether snapshots are kept there too. In the default place, on
// the disk of the snapshots, that would only take their space twice.
func (r *repository) forSnapshots() bool { return r.flags.Location != "" }

// The pauses between tries: a disk is mounted by hand, a network comes back.
const (
	repositoryPause    = time.Second
	repositoryPauseMax = time.Minute
	repositoryOpenTime = time.Minute
)

// Run opens the repository; it tries again until that succeeds or ctx ends.
func (r *repository) Run(ctx context.Context) error {
	said := ""
	for pause := repositoryPause; ; pause = min(2*pause, repositoryPauseMax) {
		open, err := r.tryOpen(ctx)
		if ctx.Err() != nil {
			return nil
		}
		r.mu.Lock()
		r.open, r.err = open, err
		r.mu.Unlock()
		if err == nil {
			r.log.Info("repository of backups is open", logkey.Path, open.String())
			return nil
		}
		if err.Error() != said {
			said = err.Error()
			r.log.Error("repository of backups cannot be used and is tried again; databases run on", logkey.Error, err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// tryOpen makes the repository at the first use of a location, and from then on
// accepts none there but that.
func (r *repository) tryOpen(ctx context.Context) (*blob.Repository, error) {
	ctx, cancel := context.WithTimeout(ctx, repositoryOpenTime)
	defer cancel()
	key, err := r.flags.key()
	if err != nil {
		return nil, err
	}
	known, err := readRepositories(r.memory)
	if err != nil {
		return nil, err
	}
	place := placeKey(r.location)
	if id := known[place]; id != "" {
		open, err := blob.Open(ctx, r.location, blob.Options{Key: key, ID: id})
		if errors.Is(err, blob.ErrOtherRepository) || errors.Is(err, blob.ErrNoRepository) {
			err = fmt.Errorf("%w; if it is gone for good, or replaced on purpose, remove its line from %s", err, r.memory)
		}
		return open, err
	}
	open, err := blob.Init(ctx, r.location, blob.Options{Key: key})
	if err != nil {
		return nil, err
	}
	known = maps.Clone(known)
	known[place] = open.ID
	return open, writeRepositories(r.memory, known)
}

// placeKey is a location without how it is reached: endpoint and region may change.
func placeKey(location string) string {
	before, _, _ := strings.Cut(location, "?")
	return strings.TrimRight(before, "/")
}

// readRepositories reads which repository was at which location.
func readRepositories(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	known := map[string]string{}
	if err == nil {
		err = json.Unmarshal(raw, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("read which repository of backups is whose (remove %s if you are sure of it): %w", path, err)
	}
	return known, nil
}

func writeRepositories(path string, known map[string]string) error {
	raw, err := json.MarshalIndent(known, "", "  ")
	if err != nil {
		return err
	}
	if err := volume.AtomicWrite(path, append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("remember the repository of backups: %w", err)
	}
	return nil
}

// checkImport refuses an import from the repository of an id, "" for this one. archived: snapshots
// are kept in it.
func (r *repository) checkImport(id string, archived bool) error {
	open, err := r.get()
	// Without an id to compare, an import can wait until the repository is open.
	mayWait := id == "" && (!archived || errors.Is(err, errOpening))
	if err != nil && !mayWait {
		return &kurabe.Error{Code: kurabe.CodeUnavailable, Message: "the repository of backups cannot be used: " + err.Error(), Err: err}
	}
	if id != "" && (open.ID != id || !archived) {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "The service does not keep snapshots in that repository but in %s; start it with the same --backup-repository.", r.location)
	}
	return nil
}

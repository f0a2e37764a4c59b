package proc

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Credential is the user a process runs as.
type Credential struct {
	UID    int   `json:"uid"`
	GID    int   `json:"gid"`
	Groups []int `json:"groups,omitempty"` // supplementary; empty means none
	// Name is shown to tools and secluded processes where the system's files have none
	// for UID; "" where they have.
	Name string `json:"name,omitempty"`
}

// Spec describes a long-lived process. Paths are absolute paths of the host.
type Spec struct {
	Name string   `json:"name"` // for messages and `ps` before exec
	Argv []string `json:"argv"` // Argv[0] is an absolute path
	Env  []string `json:"env"`  // complete: nothing is inherited
	Dir  string   `json:"dir"`  // working directory: the engine's data folder

	User *Credential `json:"user,omitempty"` // nil: as ourselves

	// StdoutStderr is appended to, /dev/null if empty. It, LockFile and
	// RecordFile are opened before privileges are dropped; they belong in a
	// folder that the engine's user cannot write, and symbolic links are refused.
	StdoutStderr string            `json:"stdout_stderr,omitempty"`
	LockFile     string            `json:"lock_file,omitempty"`
	RecordFile   string            `json:"record_file,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"` // saved in the record

	Cgroups     []string `json:"cgroups,omitempty"` // cgroup.procs files to join
	OOMScoreAdj int      `json:"oom_score_adj"`     // best effort below our own
	Nice        int      `json:"nice,omitempty"`    // best effort below our own
	Umask       int      `json:"umask"`             // 0 means 0077
	Nofile      uint64   `json:"nofile,omitempty"`  // limit of open files; 0 keeps ours

	// NotAfter ends a start that has not come to its exec by then, in nanoseconds of
	// Boottime; 0 means no end. At that moment the process has its lock and works in Dir,
	// so who kills by these after NotAfter misses no start, however late the shim runs.
	NotAfter int64 `json:"not_after,omitempty"`

	// BindAs shows the folder BindFrom (default: Dir) at another, short path, to
	// this process only. It is for data under a parent that the engine's user may
	// not traverse (see Traversable). Argv must then use paths under BindAs; Dir
	// stays a host path and is translated. Needs root.
	BindAs   string `json:"bind_as,omitempty"`
	BindFrom string `json:"bind_from,omitempty"`

	// Seclude gives the process a machine of its own. Paths of it are those that are
	// shown or given; what is bound has to be given by its BindAs.
	Seclude *Seclusion `json:"seclude,omitempty"`
}

// order is what the shim gets: a Spec and what only short tools need.
type order struct {
	Spec
	KeepStdio bool `json:"keep_stdio,omitempty"` // use the descriptors we were given
	ShowUser  bool `json:"show_user,omitempty"`  // in /etc/passwd, see showUser
}

const defaultUmask = 0o077

// withDefaults fills in what may be left out.
func (s Spec) withDefaults() Spec {
	if s.Umask == 0 {
		s.Umask = defaultUmask
	}
	if s.BindAs != "" && s.BindFrom == "" {
		s.BindFrom = s.Dir
	}
	return s
}

// check finds the mistakes that would otherwise surface as a puzzling engine log.
func (s Spec) check() error {
	if len(s.Argv) == 0 || !filepath.IsAbs(s.Argv[0]) {
		return fmt.Errorf("%s: the program must be an absolute path", s.Name)
	}
	paths := map[string]string{
		"dir": s.Dir, "log": s.StdoutStderr, "lock file": s.LockFile,
		"record file": s.RecordFile, "bind target": s.BindAs, "bind source": s.BindFrom,
	}
	for what, path := range paths {
		if path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("%s: %s %q must be an absolute path", s.Name, what, path)
		}
	}
	if s.Dir == "" {
		return fmt.Errorf("%s: no working directory", s.Name)
	}
	if s.Seclude != nil {
		for _, path := range slices.Concat(s.Seclude.Show, s.Seclude.Give) {
			if !filepath.IsAbs(path) || filepath.Clean(path) == "/" {
				return fmt.Errorf("%s: %q cannot be shown to a secluded process", s.Name, path)
			}
		}
	}
	return nil
}

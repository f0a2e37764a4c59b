package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// templates are what a service has made of the engines for itself, which takes seconds of both
// processors: the first one of a run makes them, and the others begin with them, as a service
// does that was upgraded. They are only read, so that links to their files will do.
var templates struct {
	sync.Mutex
	dir    string     // "" while nobody has any
	makers []*Service // services that began with none, and whose folder is there
}

// keepTemplates keeps those of a service if it has them of both engines.
func (s *Service) keepTemplates() error {
	own := filepath.Join(s.Data, "templates")
	for _, engine := range []string{"postgres", "mariadb"} {
		if catalogs, err := filepath.Glob(filepath.Join(own, engine, "*", "catalog.json")); err != nil || len(catalogs) == 0 {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "kb-templates-")
	if err != nil {
		return err
	}
	atEnd(func() { os.RemoveAll(dir) })
	kept := filepath.Join(dir, "templates")
	if linkTree(own, kept) != nil {
		return nil // one for a further locale was just being made
	}
	half, err := filepath.Glob(filepath.Join(kept, "*", "*", "*.scratch"))
	for _, unfinished := range half {
		err = errors.Join(err, os.RemoveAll(unfinished))
	}
	templates.dir = kept
	return err
}

// takeTemplates gives a service that begins on a fresh folder what an earlier one has made.
func (s *Service) takeTemplates(t testing.TB) {
	t.Helper()
	if _, err := os.Lstat(s.Data); !errors.Is(err, os.ErrNotExist) {
		return
	}
	templates.Lock()
	defer templates.Unlock()
	for len(templates.makers) > 0 && templates.dir == "" {
		if err := templates.makers[0].keepTemplates(); err != nil {
			t.Fatal(err)
		}
		if templates.dir == "" {
			templates.makers = templates.makers[1:]
		}
	}
	if templates.dir == "" {
		templates.makers = append(templates.makers, s)
		return
	}
	if os.MkdirAll(s.Data, 0o711) != nil {
		return // which is for the service to say
	}
	if err := linkTree(templates.dir, filepath.Join(s.Data, "templates")); err != nil {
		t.Fatal(err)
	}
}

// leaveTemplates is before a service's folder goes: of half a folder nothing is to be kept.
func (s *Service) leaveTemplates() {
	templates.Lock()
	defer templates.Unlock()
	templates.makers = slices.DeleteFunc(templates.makers, func(m *Service) bool { return m == s })
}

// linkTree makes a tree of links to the files of another one, or of copies, where the two are
// on different file systems.
func linkTree(from, to string) error {
	if exec.Command("cp", "-al", from, to).Run() == nil {
		return nil
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

package kurabe_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	longFile     = 500       // needs a reason below
	longCFile    = 600       // the same for C, which has its declarations at the top
	tooLongFile  = 800       // no reason is good enough
	maxFileBytes = 500 << 10 // every clone pays for it, for ever
	// maxStudyBytes is for the raw file of a published study, from which all its figures can
	// be computed again: each trial has its histograms.
	maxStudyBytes = 2 << 20
)

// longFiles may be longer than longFile, with the reason. They may only shrink.
var longFiles = map[string]struct {
	lines int
	why   string
}{}

// sourceEndings are the files that people write and read as code.
var sourceEndings = []string{".go", ".sh", ".py", ".ts", ".tsx", ".c", ".h", ".mk"}

// textRule is a pattern that must not stand in any text file. The patterns are
// put together from halves, or this file would break its own rules.
type textRule struct {
	name string
	re   *regexp.Regexp
	why  string
}

var textRules = []textRule{
	{"a marker for broken code", regexp.MustCompile(`\bFIX` + `ME\b`), "fix it, or file it"},
	{"a task without an issue", regexp.MustCompile(`\bTO` + `DO\b(?:[^(]|$|\([^#])`), "write it with the number of the issue in brackets, so that somebody owns it"},
	{"a path of one machine", regexp.MustCompile("(?:^|[\\s\"'`=:(,\\[])/(?:wo" + `rk|ro` + `ot|ho` + `me/[a-z0-9_-]+)/`), "it exists nowhere else"},
	{"the address of a package registry", regexp.MustCompile(`(?i)\b(?:proxy\.gol` + `ang\.org|sum\.gol` + `ang\.org|registry\.npm` + `js\.org|registry\.yarn` + `pkg\.com|(?:files\.python` + `hosted|pypi)\.` + `org|deb\.deb` + `ian\.org|index\.crates\.` + `io|[a-z0-9-]+-(?:npm|python|go|apt|docker)\.pkg` + `\.dev)\b`), "where packages come from is the machine's setting, not ours"},
}

// textExempt are files whose text is given by others.
var textExempt = []string{"LICENSE", "go.sum"}

// tracked lists what is, or is about to be, in the repository. An unpacked
// archive has no git; there every file counts that the build does not make.
func tracked(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if out, err := cmd.Output(); err == nil {
		files := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
		return slices.DeleteFunc(files, func(f string) bool {
			info, err := os.Lstat(f)
			return err != nil || !info.Mode().IsRegular()
		})
	}
	var files []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		skip := []string{".git", ".cache", ".kurabe", "bin", "node_modules", "__pycache__"}
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skip, d.Name()):
			return fs.SkipDir
		case d.Type().IsRegular():
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestTidyText(t *testing.T) {
	for _, path := range tracked(t) {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since it was listed
		}
		if err != nil {
			t.Error(err)
			continue
		}
		most := maxFileBytes
		if strings.HasPrefix(path, "docs/studies/") {
			most = maxStudyBytes
		}
		if len(data) > most {
			t.Errorf("%s has %d bytes, more than %d: every clone pays for it, for ever", path, len(data), most)
		}
		if bytes.IndexByte(data, 0) >= 0 || slices.Contains(textExempt, path) {
			continue
		}
		for i, line := range bytes.Split(data, []byte("\n")) {
			for _, rule := range textRules {
				if rule.re.Match(line) {
					t.Errorf("%s:%d holds %s: %s", path, i+1, rule.name, rule.why)
				}
			}
		}
	}
}

var generated = regexp.MustCompile(`(?m)^(?://|#|/\*) Code generated .* DO NOT EDIT\.`)

func TestTidyFileLength(t *testing.T) {
	left := map[string]bool{}
	for path := range longFiles {
		left[path] = true
	}
	for _, path := range tracked(t) {
		if !slices.Contains(sourceEndings, filepath.Ext(path)) {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil || generated.Match(data) {
			continue
		}
		lines := bytes.Count(data, []byte("\n"))
		entry, exception := longFiles[path]
		delete(left, path)
		if lines > tooLongFile {
			t.Errorf("%s has %d lines; at %d it must be divided", path, lines, tooLongFile)
			continue
		}
		if exception && entry.why == "" {
			t.Errorf("%s is an exception without a reason", path)
		}
		limit := longFile
		if filepath.Ext(path) == ".c" {
			limit = longCFile
		}
		if problem := judgeLength(lines, limit, entry.lines, exception); problem != "" {
			t.Errorf("%s has %d lines: %s", path, lines, problem)
		}
	}
	for path := range left {
		t.Errorf("%s is listed as a long file and does not exist", path)
	}
}

func TestTidyTextRules(t *testing.T) {
	cases := map[string]bool{ // line: is it refused
		"// FIX" + "ME later":                        true,
		"// TO" + "DO: name":                         true,
		"// TO" + "DO(someone): later":               true,
		"// TO" + "DO(#12): later":                   false,
		"see /wo" + "rk/main/x":                      true,
		"\"/ro" + "ot/.aws\"":                        true,
		"/net" + "work/a":                            false,
		"https://example.com/wo" + "rk/a":            false,
		"resolved https://registry.npm" + "js.org/x": true,
		"https://pkg.go" + ".dev/std":                false,
		"golang.org/toolchain":                       false,
	}
	for line, want := range cases {
		got := slices.ContainsFunc(textRules, func(r textRule) bool { return r.re.MatchString(line) })
		if got != want {
			t.Errorf("refused(%q) = %v, want %v", line, got, want)
		}
	}
}

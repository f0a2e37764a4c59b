package kurabe_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// folderRooms work, as root, in folders that engines' users own. Whoever owns a folder can
// put a link, a pipe or a name of another file in the place of anything in it, between any
// two looks: so all of them go through internal/volume, which follows no link and opens
// nothing but files.
var folderRooms = []string{"internal/engine", "internal/engine/postgres", "internal/engine/mariadb", "internal/engine/scratch", "internal/engine/fake", "internal/snapshot", "internal/logs", "internal/logstream", "internal/volume", "internal/proc"}

// folderCalls are what takes a path, by the package that it is of. "*" is everything.
var folderCalls = map[string][]string{
	"os": {
		"Open", "OpenFile", "Create", "CreateTemp", "MkdirTemp", "ReadFile", "WriteFile", "Remove", "RemoveAll", "Rename", "Mkdir", "MkdirAll",
		"Chmod", "Chown", "Lchown", "Chtimes", "Stat", "Lstat", "ReadDir", "Symlink", "Link", "Readlink", "Truncate", "CopyFS", "DirFS", "OpenRoot", "OpenInRoot", "Root",
	},
	"path/filepath":         {"Walk", "WalkDir", "Glob", "EvalSymlinks"},
	"io/ioutil":             {"*"},
	"golang.org/x/sys/unix": folderSystemCalls,
	"syscall":               folderSystemCalls,
}

var folderSystemCalls = []string{
	"Open", "Openat", "Openat2", "Creat", "Stat", "Lstat", "Statx", "Fstatat", "Statfs", "Access", "Faccessat", "Faccessat2", "Mkdir", "Mkdirat", "Rmdir", "Unlink", "Unlinkat",
	"Rename", "Renameat", "Renameat2", "Chmod", "Fchmodat", "Chown", "Lchown", "Fchownat", "Link", "Linkat", "Symlink", "Symlinkat", "Readlink", "Readlinkat",
	"Truncate", "Mknod", "Mknodat", "Mkfifo", "Mkfifoat", "Utimes", "UtimesNanoAt", "Setxattr", "Lsetxattr", "Mount", "Unmount",
}

// folderWords are programs that follow links for us, and the network whose addresses are paths.
var folderWords = []string{"cp", "mv", "rm", "ln", "chown", "chmod", "find", "tar", "unix"}

// folderFree are files that may, with the reason. Each must need it.
var folderFree = map[string]string{
	"internal/volume/below.go":                             "the helper itself",
	"internal/volume/below_walk.go":                        "the helper itself",
	"internal/volume/below_socket.go":                      "the helper itself",
	"internal/volume/lock.go":                              "the lock lies in the data folder of the service",
	"internal/volume/pool.go":                              "the image lies in the data folder of the service",
	"internal/volume/pool_loop.go":                         "devices, and where the kernel says that they are mounted",
	"internal/volume/pool_mount.go":                        "image and mount point lie in the data folder of the service",
	"internal/volume/pool_space.go":                        "the image, and a file in the top folder of the pool, are the service's",
	"internal/proc/no_follow.go":                           "the helper of a room that imports no other",
	"internal/proc/process_stat.go":                        "/proc",
	"internal/proc/start_time.go":                          "/proc",
	"internal/proc/tool_pace.go":                           "/proc",
	"internal/proc/survivors.go":                           "/proc: the folder in which a process works is a link by nature",
	"internal/proc/lock.go":                                "/proc: what a process has open",
	"internal/proc/freeze_thread.go":                       "/proc",
	"internal/proc/tree_find.go":                           "/proc and control groups",
	"internal/proc/bind_reexec.go":                         "the data folder of the service and a mount point of its own, before anything runs",
	"internal/proc/traversable.go":                         "looks at the modes of the folders above, and tells nothing else of them",
	"internal/proc/seclude.go":                             "a root in memory that no engine's user has been in yet; what is shown in it is opened by the service's own paths, without a link at their end",
	"internal/proc/user_processes.go":                      "/proc",
	"internal/volume/handover.go":                          "the owner of what the helper has open, of user and group each",
	"internal/proc/shim_steps.go":                          "/proc, control groups, and a mount point of the service; the folder that is bound is opened by the helper",
	"internal/proc/record.go":                              "renames within a folder that the helper has opened",
	"internal/engine/postgres/tree/tree.go":                "programs, which belong to root: links are what such a tree is made of",
	"internal/engine/postgres/tree/extension.go":           "programs, which belong to root",
	"internal/engine/postgres/catalog.go":                  "programs, which belong to root",
	"internal/engine/postgres/discover.go":                 "programs, which belong to root and to which links lead",
	"internal/engine/mariadb/discover.go":                  "programs, which belong to root and to which links lead",
	"internal/engine/mariadb/systemtables/systemtables.go": "programs, which belong to root",
	"internal/engine/mariadb/systemtables/timezone.go":     "/usr/share/zoneinfo, which is full of links",
	"internal/engine/mariadb/driver.go":                    "the plugin's file, which belongs to root",
	"internal/engine/mariadb/conf/password_plugin.go":      "the plugin's file, which belongs to root",
	"internal/engine/mariadb/conf/programs.go":             "programs, which belong to root",
	"internal/engine/scratch/folder.go":                    "a mount point in the system's folder for temporary files, where only its owner can replace it",
	"internal/engine/mariadb/init_data.go":                 "a folder among the system's temporary files, which only its owner can replace",
	"internal/engine/postgres/wal/waltest/waltest.go":      "segments in folders of tests",
	"internal/engine/reserve.go":                           "the size of the disk below a folder of the service",
	"internal/logstream/config.go":                         "the spool is the service's alone",
	"internal/logstream/store.go":                          "the spool is the service's alone",
	"internal/logstream/load.go":                           "the spool is the service's alone",
	"internal/logstream/index.go":                          "the spool is the service's alone",
	"internal/logstream/spool_file.go":                     "the spool is the service's alone",
	"internal/logstream/follow.go":                         "the spool is the service's alone",
	"internal/logstream/trim.go":                           "the spool is the service's alone",
	"internal/logstream/adopt.go":                          "the spool is the service's alone",
}

// folderOnly narrows a reason to the calls that it is good for: these files work in folders
// of engines as well.
var folderOnly = map[string][]string{
	"internal/engine/scratch/folder.go":    {"os.MkdirTemp", "os.Remove"},
	"internal/engine/mariadb/init_data.go": {"os.MkdirTemp", "os.RemoveAll"},
	"internal/engine/reserve.go":           {"syscall.Statfs"},
	"internal/volume/below_walk.go":        {"unix.Fstatat", "unix.Openat"},
	"internal/volume/below_socket.go":      {`"unix"`},
	"internal/proc/record.go":              {"unix.Renameat"},
	"internal/proc/survivors.go":           {"unix.Stat"},
	"internal/proc/lock.go":                {"os.ReadDir", "os.ReadFile", "unix.Stat"},
	"internal/proc/seclude.go": {"os.Lstat", "os.MkdirAll", "os.Symlink", "os.WriteFile", "os.Chmod", "os.ReadDir", "os.ReadFile",
		"unix.Mount", "unix.Unmount", "unix.Open", "unix.Readlinkat"},
	"internal/proc/user_processes.go": {"os.ReadFile"},
	"internal/volume/handover.go":     {"unix.Fchownat"},
	"internal/proc/shim_steps.go":     {"os.WriteFile", "os.ReadDir", "os.MkdirAll", "unix.Mount"},
}

// inFolderRoom: the folders within an engine's are of its room.
func inFolderRoom(dir string) bool {
	return slices.ContainsFunc(folderRooms, func(room string) bool {
		return dir == room || strings.HasPrefix(room, "internal/engine/") && strings.HasPrefix(dir, room+"/")
	})
}

// TestTidyFolders: see folderRooms.
func TestTidyFolders(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		name := filepath.ToSlash(s.path)
		if s.test || !inFolderRoom(path.Dir(name)) {
			continue
		}
		for _, c := range s.pathCalls() {
			if folderFree[name] != "" && (folderOnly[name] == nil || slices.Contains(folderOnly[name], c.what)) {
				used[name+" "+c.what], used[name] = true, true
				continue
			}
			t.Errorf("%s: %s: work in folders of engines goes through internal/volume (see folderRooms)", s.fset.Position(c.at), c.what)
		}
	}
	for name, why := range folderFree {
		if !used[name] || why == "" {
			t.Errorf("%s needs no exception, or has no reason", name)
		}
	}
	for name, calls := range folderOnly {
		for _, c := range calls {
			if !used[name+" "+c] {
				t.Errorf("%s needs no exception for %s", name, c)
			}
		}
	}
}

type pathCall struct {
	what string
	at   token.Pos
}

// pathCalls are the uses of folderCalls and folderWords in a file.
func (s source) pathCalls() []pathCall {
	names := map[string]string{} // of packages in this file
	for _, i := range s.file.Imports {
		full, _ := strconv.Unquote(i.Path.Value)
		name := path.Base(full)
		if i.Name != nil {
			name = i.Name.Name
		}
		if folderCalls[full] != nil {
			names[name] = full
		}
	}
	var found []pathCall
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.SelectorExpr:
			of, ok := n.X.(*ast.Ident)
			if !ok || names[of.Name] == "" {
				return true
			}
			full := names[of.Name]
			if calls := folderCalls[full]; slices.Contains(calls, n.Sel.Name) || slices.Contains(calls, "*") {
				found = append(found, pathCall{path.Base(full) + "." + n.Sel.Name, n.Pos()})
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
				word := strings.TrimPrefix(strings.TrimPrefix(text, "/usr"), "/bin/")
				if slices.Contains(folderWords, word) {
					found = append(found, pathCall{n.Value, n.Pos()})
				}
			}
		}
		return true
	})
	return found
}

// toolsAsUs are files whose tools run as the service, with the reason. All others read what an
// engine has written as the engine's user, so that a file which leads them elsewhere, or
// into a mistake of theirs, leads no further than that user comes anyway.
var toolsAsUs = map[string]string{
	"internal/engine/postgres/discover.go": "asks a program for its version, and the system for its locales",
	"internal/engine/mariadb/discover.go":  "asks a program for its version",
}

// TestTidyTools: the engines' tools run as the engine's user.
func TestTidyTools(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		name := filepath.ToSlash(s.path)
		if s.test || !strings.HasPrefix(path.Dir(name), "internal/engine/") || path.Base(path.Dir(name)) == "enginetest" {
			continue
		}
		given := map[ast.Node]bool{} // tools whose user memberTool or a scratch folder fills in
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				f, isName := n.Fun.(*ast.Ident)
				method, isMethod := n.Fun.(*ast.SelectorExpr)
				if isName && f.Name == "memberTool" || isMethod && (method.Sel.Name == "Run" || method.Sel.Name == "Start") && fmt.Sprint(method.X) != "proc" {
					for _, arg := range n.Args {
						given[arg] = true
					}
				}
			case *ast.CompositeLit:
				if !isTool(n) || given[n] || namesUser(n) {
					return true
				}
				if toolsAsUs[name] == "" {
					t.Errorf("%s: a tool without a User runs as the service (see toolsAsUs)", s.fset.Position(n.Pos()))
				}
				used[name] = true
			}
			return true
		})
	}
	for name := range toolsAsUs {
		if !used[name] {
			t.Errorf("%s needs no exception", name)
		}
	}
}

func isTool(n *ast.CompositeLit) bool {
	kind, ok := n.Type.(*ast.SelectorExpr)
	if !ok || kind.Sel.Name != "Tool" && kind.Sel.Name != "Spec" {
		return false
	}
	of, ok := kind.X.(*ast.Ident)
	return ok && of.Name == "proc"
}

func namesUser(n *ast.CompositeLit) bool {
	return slices.ContainsFunc(n.Elts, func(e ast.Expr) bool {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		key, ok := field.Key.(*ast.Ident)
		return ok && key.Name == "User"
	})
}

// maxFolderFiles bounds the product files of a folder: its list of names has to be read at once.
const maxFolderFiles = 32

// largeFolders may only shrink: the number is the present one, and a folder that comes within the
// bound takes its entry along.
var largeFolders = map[string]int{}

func TestTidyFolderSize(t *testing.T) {
	count := map[string]int{}
	for _, s := range sources(t) {
		if !s.test {
			count[path.Dir(filepath.ToSlash(s.path))]++
		}
	}
	for dir, n := range count {
		listed, exception := largeFolders[dir]
		if problem := judgeLength(n, maxFolderFiles, listed, exception); problem != "" {
			t.Errorf("%s has %d product files: %s", dir, n, problem)
		}
	}
	for dir := range largeFolders {
		if count[dir] == 0 {
			t.Errorf("%s is listed as a large folder and does not exist", dir)
		}
	}
}

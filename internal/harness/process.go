package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"kurabe/internal/proc"
)

// Homes are the ids of the instances that have a folder.
func (s *Service) Homes() []string { return names(filepath.Join(s.Data, "instances"), "") }

// Assignments are the ids of the instances whose assignment is saved.
func (s *Service) Assignments() []string { return names(filepath.Join(s.Data, "assignments"), ".json") }

func names(dir, ending string) []string {
	entries, _ := os.ReadDir(dir) // a folder that is not there yet holds nothing
	var list []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ending); ok {
			list = append(list, name)
		}
	}
	return list
}

// Processes are the pids that work in an instance's data folder.
func (s *Service) Processes(id string) []int {
	pids, _ := proc.Survivors(s.dataFolder(id)) // no folder, no process
	return pids
}

// dataFolder is the data folder of an instance. In a pool the name leads there by a link, which
// the product follows nowhere.
func (s *Service) dataFolder(id string) string {
	name := filepath.Join(s.Data, "instances", id, "data")
	if folder, err := filepath.EvalSymlinks(name); err == nil {
		return folder
	}
	return name
}

// copyTool reads a server's folder from within while a clone or a snapshot is made of it.
const copyTool = "mariadb-backup"

// Servers are the servers of an instance: processes that were started as one, and
// not by another of them. More than one is two servers on one folder. Children
// that outlive their server are none, PostgreSQL's have a title for a command line.
func (s *Service) Servers(id string) []int {
	pids := s.Processes(id)
	in := map[int]bool{}
	for _, pid := range pids {
		in[pid] = true
	}
	var servers []int
	for _, pid := range pids {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		program, _, _ := strings.Cut(string(command), "\x00")
		if parent, ok := parentOf(pid); ok && !in[parent] && err == nil && filepath.IsAbs(program) && filepath.Base(program) != copyTool {
			servers = append(servers, pid)
		}
	}
	return servers
}

// parentOf is false for a process that is gone.
func parentOf(pid int) (int, bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
		return 0, false
	}
	parent, err := strconv.Atoi(fields[1])
	return parent, err == nil
}

// EndDatabases kills every process that works in an instance's folder.
func (s *Service) EndDatabases(ctx context.Context) error {
	var errs []error
	for _, id := range s.Homes() {
		err := proc.KillSurvivors(ctx, s.dataFolder(id))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// HostID is what the host calls itself.
func (s *Service) HostID() string {
	var h struct{ ID string }
	data, err := os.ReadFile(filepath.Join(s.Data, "host.json"))
	if err != nil || json.Unmarshal(data, &h) != nil {
		return ""
	}
	return h.ID
}

// groupFolders are the folders of the service's control groups, one for each
// controller.
func (s *Service) groupFolders() []string {
	host := s.HostID()
	if host == "" {
		return nil
	}
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/kurabe-" + host, "/sys/fs/cgroup/*/kurabe-" + host} {
		dirs, _ := filepath.Glob(pattern) // the patterns are well formed
		found = append(found, dirs...)
	}
	return found
}

// Groups are the names of the service's control groups.
func (s *Service) Groups() []string {
	seen := map[string]bool{}
	var list []string
	for _, dir := range s.groupFolders() {
		entries, _ := os.ReadDir(dir) // gone meanwhile
		for _, e := range entries {
			if e.IsDir() && !seen[e.Name()] {
				seen[e.Name()] = true
				list = append(list, e.Name())
			}
		}
	}
	return list
}

// GroupFile reads a file of an instance's control group, "" where there is none.
func (s *Service) GroupFile(id, name string) string {
	for _, dir := range s.groupFolders() {
		if data, err := os.ReadFile(filepath.Join(dir, id, name)); err == nil {
			return strings.TrimSpace(string(data))
		}
	}
	return ""
}

// removeGroups removes what a killed service left: groups hold no data.
func (s *Service) removeGroups() error {
	var errs []error
	for _, dir := range s.groupFolders() {
		entries, _ := os.ReadDir(dir) // gone meanwhile
		for _, e := range entries {
			if e.IsDir() {
				errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
			}
		}
		errs = append(errs, os.Remove(dir))
	}
	return errors.Join(errs...)
}

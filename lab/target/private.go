package target

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kurabe/lab/owner"
	"kurabe/lab/study"
)

const (
	// readyTime bounds the first start of a service: seconds, minutes on a slow machine,
	// for it tries the engines that it finds.
	readyTime = 15 * time.Minute
	// serviceEnd bounds its end, during which databases are shut down cleanly.
	serviceEnd = 6 * time.Minute
	// lineBytesMax bounds the line that says where it is, or whose.
	lineBytesMax = 4 << 10
	// copies of the data that a private service has at the same time: the first instance
	// or its snapshot twice over, the leased instance, and the one that leaves.
	copies = 4
	// logged instances are there at the same time: the leased one and the one that leaves.
	logged = 2
	// headroomBytes are for ordinary logs, engines' own files and the state of the service.
	headroomBytes = 2 << 30
)

// What lies in the folder of a private service.
const (
	dataFolder = "data"
	logFile    = "log"
)

// private is a service of our own.
type private struct {
	*rdsTarget
	dir   string
	child *child
}

// Private starts a service in a temporary folder and is the RDS API on it. Close ends the
// service and removes the folder.
func Private(ctx context.Context, o Options) (Target, error) {
	o.step("start a private service")
	dir, err := owner.Folder(o.Folder, "")
	if err != nil {
		return nil, fmt.Errorf("start a private service: %w", err)
	}
	p := &private{dir: dir}
	fail := func(err error) (Target, error) {
		return nil, fmt.Errorf("start a private service: %w", errors.Join(err, p.end()))
	}
	if p.child, o.Endpoint, err = serve(ctx, dir, o.Program); err != nil {
		return fail(err)
	}
	o.CredentialsFile = filepath.Join(dir, dataFolder, "credentials")
	if p.rdsTarget, err = newRDS(ctx, o); err != nil {
		return fail(err)
	}
	p.kind = KindPrivate
	return p, nil
}

// serve starts the service on a folder and waits until it is ready.
func serve(ctx context.Context, dir, program string) (*child, string, error) {
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return nil, "", fmt.Errorf("find this program: %w", err)
		}
	}
	if os.Getuid() == 0 {
		// The engines' users pass through to their own folders.
		if err := os.Chmod(dir, 0o711); err != nil {
			return nil, "", err
		}
	}
	log, err := os.OpenFile(filepath.Join(dir, logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, "", err
	}
	defer log.Close() // the service has its own
	// Nothing else runs while a snapshot is restored, so no copy needs to be slow.
	cmd := exec.Command(program, "server", "--data", filepath.Join(dir, dataFolder), "--listen", "127.0.0.1:0",
		"--stop-databases-on-exit", "--verify-every", "0", "--copy-rate", "0")
	cmd.Env, cmd.Stderr = ownEnvironment(), log
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	defer reader.Close()
	cmd.Stdout = writer
	c, err := start(cmd)
	writer.Close() // the service has its own
	if err != nil {
		return nil, "", err
	}
	url, err := waitReady(ctx, c, reader)
	if err != nil {
		stopErr := c.stop(serviceEnd)
		return nil, "", errors.Join(fmt.Errorf("%w; its log ends:\n%s", err, fileTail(log.Name())), stopErr)
	}
	return c, url, nil
}

// ownEnvironment is ours without what would lead the service astray.
func ownEnvironment() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "KURABE_") && !strings.HasPrefix(e, "AWS_") {
			env = append(env, e)
		}
	}
	return env
}

// waitReady reads "kurabe ready URL".
func waitReady(ctx context.Context, c *child, output io.Reader) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTime, fmt.Errorf("it was not ready within %s", readyTime))
	defer cancel()
	line := make(chan string, 1)
	go func() {
		text, err := bufio.NewReader(io.LimitReader(output, lineBytesMax)).ReadString('\n')
		if err == nil {
			line <- text
		}
		close(line)
	}()
	select {
	case text := <-line:
		url, ok := strings.CutPrefix(strings.TrimSpace(text), "kurabe ready ")
		if ok {
			return url, nil
		}
		return "", errors.New("the service ended before it was ready")
	case <-c.done:
		return "", fmt.Errorf("the service ended before it was ready: %w", c.err)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// fileTail is the end of a log, for an error.
func fileTail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := f.Seek(-tailBytes, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, tailBytes))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data))
}

// Check implements Target: the disk is ours to look after too.
func (p *private) Check(ctx context.Context, s *study.Study) (map[string]string, error) {
	if err := PrivateRoom(filepath.Dir(p.dir), s); err != nil {
		return nil, err
	}
	return p.rdsTarget.Check(ctx, s)
}

// PrivateRoom says that the disk of a folder, "" for the usual one, has no room for a
// private service and a study's data. It can be asked before the service is started.
func PrivateRoom(folder string, s *study.Study) error {
	if folder == "" {
		folder = os.TempDir()
	}
	return noDisk(folder, copies*dataBytes(s)+logged*logBytes(s)+headroomBytes, "choose another folder with TMPDIR, or a smaller scale")
}

// Close implements Target.
func (p *private) Close(ctx context.Context) error {
	var err error
	if !p.child.ended() {
		err = p.rdsTarget.Close(ctx)
	}
	return errors.Join(err, p.end())
}

// end ends the service and removes the folder.
func (p *private) end() error {
	var err error
	if p.child != nil {
		err = p.child.stop(serviceEnd)
	}
	return errors.Join(err, removeAll(p.dir))
}

// CleanPrivate removes the folders and files of labs that died before they could, of
// private services, poolers, generators and canaries alike, and says what it removed, and what it kept and why.
func CleanPrivate(ctx context.Context, o Options) (said []string, failure error) {
	parent := o.Folder
	if parent == "" {
		parent = os.TempDir()
	}
	me, err := owner.This()
	if err != nil {
		return nil, err
	}
	folders, err := filepath.Glob(filepath.Join(parent, namePrefix+"*"))
	if err != nil {
		return nil, fmt.Errorf("look for folders and files: %w", err)
	}
	for _, path := range folders {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			continue
		}
		kind, look, remove := "folder", keepFolder, func() error { return removeFolder(ctx, path, o.Program) }
		if !info.IsDir() {
			kind, look, remove = "file", keepFile, func() error { return os.Remove(path) }
		}
		why := foreign(path, info)
		if why == "" {
			why = look(path, me, o.Others)
		}
		if why != "" {
			said = append(said, fmt.Sprintf("kept %s %s: %s", kind, path, why))
			continue
		}
		if err := remove(); err != nil {
			failure = errors.Join(failure, fmt.Errorf("remove %s %s: %w", kind, path, err))
			continue
		}
		said = append(said, "removed "+kind+" "+path)
	}
	return said, failure
}

// foreign says that a folder is another user's, whose program we must not run on it. Root
// gives poolers' folders away itself; those are only removed.
func foreign(dir string, info os.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(stat.Uid) == os.Getuid() {
		return ""
	}
	if _, err := os.Lstat(filepath.Join(dir, dataFolder)); ok && os.Getuid() == 0 && errors.Is(err, os.ErrNotExist) {
		return ""
	}
	return "it is another user's"
}

// keepFolder is keep for a folder. One whose owner was not written yet names its process.
func keepFolder(dir string, me owner.Owner, others bool) string {
	data, err := os.ReadFile(filepath.Join(dir, owner.File))
	if err == nil {
		return keep(string(data), me, others)
	}
	return keepUnsigned(dir)
}

// keepFile is keep for a file, whose first line says whose it is.
func keepFile(path string, me owner.Owner, others bool) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, lineBytesMax)).ReadString('\n')
	if err != nil && line == "" {
		return keepUnsigned(path)
	}
	return keep(line, me, others)
}

// keepUnsigned goes by the process in a name.
func keepUnsigned(path string) string {
	number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), namePrefix), "-")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return "its name holds no process number, so nothing says that a lab made it, or which: if no lab runs, remove it yourself"
	}
	if _, err := owner.ProcessStart(pid); err == nil {
		return fmt.Sprintf("a process %d runs, and nothing says that it is another one than the lab's", pid)
	}
	return ""
}

// removeFolder removes a dead lab's. A service that died with it has left its databases
// running: they are adopted by a new one, and stopped with it.
func removeFolder(ctx context.Context, dir, program string) error {
	instances, err := filepath.Glob(filepath.Join(dir, dataFolder, "instances", "*"))
	if err != nil {
		return err
	}
	if len(instances) > 0 {
		if err := serviceGone(ctx, dir); err != nil {
			return err
		}
		c, _, err := serve(ctx, dir, program)
		if err != nil {
			return err
		}
		if err := c.stop(serviceEnd); err != nil {
			return err
		}
	}
	return removeAll(dir)
}

// serviceLock is the file that a service holds an flock on as long as it lives.
const serviceLock = "kurabe.lock"

// serviceGone waits for the end of a service whose lab has died: it was told to stop by
// that death, and may be at it.
func serviceGone(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, serviceEnd, fmt.Errorf("its service still runs after %s", serviceEnd))
	defer cancel()
	file, err := os.OpenFile(filepath.Join(dir, dataFolder, serviceLock), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close() // and the lock with it
	tick := time.NewTicker(pollNear)
	defer tick.Stop()
	for unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

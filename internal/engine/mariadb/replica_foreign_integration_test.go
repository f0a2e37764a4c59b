//go:build integration

package mariadb

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/engine/mariadb/binlog"
	"kurabe/internal/engine/mariadb/door"
)

// rawClient speaks the protocol as far as a replica does.
type rawClient struct {
	t    *testing.T
	conn net.Conn
	seq  byte
}

func (c *rawClient) read() []byte {
	c.t.Helper()
	head := make([]byte, 4)
	if _, err := io.ReadFull(c.conn, head); err != nil {
		c.t.Fatal(err)
	}
	body := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	if _, err := io.ReadFull(c.conn, body); err != nil {
		c.t.Fatal(err)
	}
	c.seq = head[3] + 1
	return body
}

func (c *rawClient) write(body []byte) {
	c.t.Helper()
	head := []byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), c.seq}
	if _, err := c.conn.Write(append(head, body...)); err != nil {
		c.t.Fatal(err)
	}
}

// say sends a command, which begins a sequence.
func (c *rawClient) say(body []byte) {
	c.seq = 0
	c.write(body)
}

func (c *rawClient) query(statement string) {
	c.t.Helper()
	c.say(append([]byte{3}, statement...))
	if answer := c.read(); answer[0] != 0 {
		c.t.Fatalf("%s: %q", statement, answer)
	}
}

// login is that of mysql_native_password.
func (c *rawClient) login(user, password string) {
	c.t.Helper()
	greeting := c.read()
	_, rest, _ := bytes.Cut(greeting[1:], []byte{0}) // behind the version
	salt := append(append([]byte(nil), rest[4:12]...), rest[31:43]...)
	one := sha1.Sum([]byte(password))
	two := sha1.Sum(one[:])
	three := sha1.Sum(append(salt, two[:]...))
	for n := range three {
		three[n] ^= one[n]
	}
	const flags = 0x200 | 0x8000 | 0x80000 // 4.1, secure connection, plugins
	body := binary.LittleEndian.AppendUint32(nil, flags)
	body = binary.LittleEndian.AppendUint32(body, 1<<24)
	body = append(append(body, 45), make([]byte, 23)...)
	body = append(append(body, user...), 0, byte(len(three)))
	body = append(append(body, three[:]...), door.NativePlugin+"\x00"...)
	c.write(body)
	if answer := c.read(); answer[0] != 0 {
		c.t.Fatalf("login: %q", answer)
	}
}

// rawSession comes in without TLS, as a replica of a user's that offers to answer for commits.
func rawSession(t *testing.T, b *enginetest.Bed, user, password string) *rawClient {
	t.Helper()
	conn, err := net.DialTimeout("tcp", door.Endpoint(b.Instance()), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	c := &rawClient{t: t, conn: conn}
	c.login(user, password)
	c.query("SET @master_binlog_checksum = 'CRC32'")
	c.query("SET @mariadb_slave_capability = 4")
	c.query("SET @rpl_semi_sync_slave = 1")
	return c
}

// dump asks for the log (COM_BINLOG_DUMP) and returns the first answer.
func (c *rawClient) dump(serverID uint32, file string, at uint32) []byte {
	c.t.Helper()
	body := binary.LittleEndian.AppendUint32([]byte{0x12}, at)
	body = binary.LittleEndian.AppendUint16(body, 0)
	body = binary.LittleEndian.AppendUint32(body, serverID)
	c.say(append(body, file...))
	return c.read()
}

// register says who follows and where it listens (COM_REGISTER_SLAVE), and returns the answer.
func (c *rawClient) register(serverID uint32, host string, port uint16) []byte {
	c.t.Helper()
	body := binary.LittleEndian.AppendUint32([]byte{0x15}, serverID)
	body = append(append(body, byte(len(host))), host...)
	body = binary.LittleEndian.AppendUint16(append(body, 0, 0), port) // no name, no password
	c.say(append(body, make([]byte, 8)...))                           // rank, number of the source
	return c.read()
}

// refused says whether an answer is an error of that number.
func refused(answer []byte, number uint16) bool {
	return len(answer) > 3 && answer[0] == 0xFF && binary.LittleEndian.Uint16(answer[1:]) == number
}

// foreignReplica is a replica of the master user's. It receives the log from its beginning.
func foreignReplica(t *testing.T, b *enginetest.Bed) io.Closer {
	t.Helper()
	c := rawSession(t, b, b.Want.MasterUsername, b.Password.Reveal())
	if answer := c.dump(4711, binlog.FileName(1), uint32(len(binlog.Magic))); answer[0] != 0 {
		t.Fatalf("the log: %q", answer)
	}
	return c.conn
}

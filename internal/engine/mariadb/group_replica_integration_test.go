//go:build integration

package mariadb

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"kurabe/internal/engine/enginetest"
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
	body = append(append(body, three[:]...), nativePlugin+"\x00"...)
	c.write(body)
	if answer := c.read(); answer[0] != 0 {
		c.t.Fatalf("login: %q", answer)
	}
}

// foreignReplica is a replica of the master user's that offers to answer for commits. It
// receives the log from its beginning.
func foreignReplica(t *testing.T, b *enginetest.Bed) io.Closer {
	t.Helper()
	conn, err := net.DialTimeout("tcp", endpoint(b.Instance()), patience)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	c := &rawClient{t: t, conn: conn}
	c.login(b.Want.MasterUsername, b.Password.Reveal())
	c.query("SET @master_binlog_checksum = 'CRC32'")
	c.query("SET @mariadb_slave_capability = 4")
	c.query("SET @rpl_semi_sync_slave = 1")
	dump := binary.LittleEndian.AppendUint32([]byte{0x12}, uint32(len(logMagic)))
	dump = binary.LittleEndian.AppendUint16(dump, 0)
	dump = binary.LittleEndian.AppendUint32(dump, 4711)
	c.say(append(dump, fmt.Sprintf("%s.%06d", binlogName, 1)...))
	if answer := c.read(); answer[0] != 0 {
		t.Fatalf("the log: %q", answer)
	}
	return conn
}

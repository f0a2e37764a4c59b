package load

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"kurabe/lab/study"
)

// Commands of MySQL's protocol.
const (
	comQuery   = 0x03
	comPrepare = 0x16
	comExecute = 0x17
	comClose   = 0x19
)

// nullMySQL says OK to everything, and to nothing that errors says.
type nullMySQL struct {
	errors map[string]uint16 // number by statement, once each

	mu    sync.Mutex
	texts map[string]int
	count map[byte]int
}

func packet(sequence byte, body []byte) []byte {
	head := []byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), sequence}
	return append(head, body...)
}

var (
	okPacket  = []byte{0, 0, 0, 2, 0, 0, 0}
	eofPacket = []byte{0xfe, 0, 0, 2, 0}
)

// greeting asks for the password by mysql_native_password. The salt is of one letter.
func greeting() []byte {
	const caps = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x80000
	salt := bytes.Repeat([]byte{'s'}, 20)
	b := append([]byte("\x0a5.5.5-null\x00"), 1, 0, 0, 0)
	b = append(append(b, salt[:8]...), 0)
	b = binary.LittleEndian.AppendUint16(b, caps&0xffff)
	b = append(b, 33, 2, 0)
	b = binary.LittleEndian.AppendUint16(b, caps>>16)
	b = append(append(b, 21), make([]byte, 10)...)
	return append(append(b, salt[8:]...), "\x00mysql_native_password\x00"...)
}

func receive(c net.Conn) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	body := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	_, err := io.ReadFull(c, body)
	return body, err
}

// await waits until so many of a command have come, or for five seconds: what is not
// answered may still be on its way when the client has gone.
func (m *nullMySQL) await(command byte, n int) {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		m.mu.Lock()
		came := m.count[command]
		m.mu.Unlock()
		if came >= n {
			return
		}
	}
}

func (m *nullMySQL) serve(c net.Conn) {
	if _, err := c.Write(packet(0, greeting())); err != nil {
		return
	}
	if _, err := receive(c); err != nil {
		return
	}
	if _, err := c.Write(packet(2, okPacket)); err != nil {
		return
	}
	for {
		body, err := receive(c)
		if err != nil || len(body) == 0 {
			return
		}
		if answer := m.answer(body[0], string(body[1:])); answer != nil {
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	}
}

func (m *nullMySQL) answer(command byte, text string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count[command]++
	if command == comQuery || command == comPrepare {
		m.texts[text]++
		if number, ok := m.errors[text]; ok {
			delete(m.errors, text)
			return packet(1, append(binary.LittleEndian.AppendUint16([]byte{0xff}, number), "#HY000no"...))
		}
	}
	switch command {
	case comQuery, comExecute:
		return packet(1, okPacket)
	case comPrepare:
		marks := bytes.Count([]byte(text), []byte{'?'})
		all := packet(1, []byte{0, 1, 0, 0, 0, 0, 0, byte(marks), 0, 0, 0, 0})
		for n := range marks {
			all = append(all, packet(byte(2+n), []byte("\x03def\x00\x00\x00\x01?\x00\x0c\x3f\x00\x00\x00\x00\x00\xfd\x00\x00\x00\x00\x00"))...)
		}
		if marks > 0 {
			all = append(all, packet(byte(2+marks), eofPacket)...)
		}
		return all
	}
	return nil
}

func TestMySQLProtocols(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		errors map[string]uint16
		texts  map[string]int
		count  map[byte]int
		failed map[string]int64
	}{
		protocolSimple:   {nil, map[string]int{"BEGIN": 20, "UPDATE t SET a = 5": 20}, map[byte]int{comQuery: 40}, nil},
		protocolExtended: {nil, map[string]int{"UPDATE t SET a = ?": 20}, map[byte]int{comPrepare: 40, comExecute: 40, comClose: 40}, nil},
		protocolPrepared: {nil, map[string]int{"UPDATE t SET a = ?": 1}, map[byte]int{comPrepare: 2, comExecute: 40, comQuery: 0}, nil},
		// MySQL prepares no BEGIN: it goes as text from then on.
		protocolPrepared + " without BEGIN": {map[string]uint16{"BEGIN": notPreparable}, nil, map[byte]int{comPrepare: 2, comExecute: 20, comQuery: 20}, nil},
		protocolExtended + " without BEGIN": {map[string]uint16{"BEGIN": notPreparable}, nil, map[byte]int{comPrepare: 21, comExecute: 20, comQuery: 20}, nil},
		protocolSimple + " deadlock":        {map[string]uint16{"UPDATE t SET a = 5": 1213}, map[string]int{"ROLLBACK": 1}, nil, map[string]int64{"1213": 1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := &nullMySQL{errors: c.errors, texts: map[string]int{}, count: map[byte]int{}}
			s := serveNull(t, study.MariaDB, m.serve)
			w := openLoad(1, 100)
			w.Script, w.Protocol = "\\set a 5\nBEGIN;UPDATE t SET a = :a;", firstWord(name)
			out, err := generator(t, w).Run(context.Background(), s, Options{Measure: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			l := phase(t, out, "measure").Load
			balanced(t, l)
			if l.Offered != 20 || failures(l) != int64(len(c.failed)) {
				t.Errorf("%+v", l)
			}
			m.await(comClose, c.count[comClose])
			m.mu.Lock()
			defer m.mu.Unlock()
			for text, n := range c.texts {
				if m.texts[text] != n {
					t.Errorf("%q came %d times, want %d", text, m.texts[text], n)
				}
			}
			for command, n := range c.count {
				if m.count[command] != n {
					t.Errorf("command %#x came %d times, want %d", command, m.count[command], n)
				}
			}
		})
	}
}

func firstWord(text string) string {
	word, _, _ := bytes.Cut([]byte(text), []byte(" "))
	return string(word)
}

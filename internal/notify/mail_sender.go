package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"strings"
	"time"

	"kurabe/internal/logkey"
)

// Mail is the SMTP server by which mails are sent; the zero one sends none.
type Mail struct {
	Server   string // host:port; port 465 is spoken TLS to from the first byte
	From     string // address, with a name or without
	User     string // "" for a server that wants none
	Password logkey.Secret
	Roots    *tls.Config // nil: the system's authorities
}

const (
	mailTimeout  = 30 * time.Second
	smtpsPort    = "465"
	mailLineStop = "\r\n"
)

// Check says why mails could not be sent with these settings.
func (m Mail) Check() error {
	switch {
	case m.Server == "" && m.From == "" && m.User == "":
		return nil
	case m.Server == "" || m.From == "":
		return errors.New("--smtp-server and --smtp-from need each other")
	}
	if _, _, err := net.SplitHostPort(m.Server); err != nil {
		return fmt.Errorf("--smtp-server %q is not HOST:PORT", m.Server)
	}
	if _, err := mail.ParseAddress(m.From); err != nil {
		return fmt.Errorf("--smtp-from %q is no address of a mail", m.From)
	}
	return nil
}

// send sends one mail.
func (m Mail) send(ctx context.Context, msg message) error {
	if m.Server == "" {
		return &failure{reason: "the service was started without --smtp-server", permanent: true}
	}
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	host, port, _ := net.SplitHostPort(m.Server)
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", m.Server)
	if err != nil {
		return mailFailure("connect to the mail server", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	config := &tls.Config{ServerName: host}
	if m.Roots != nil {
		config.RootCAs = m.Roots.RootCAs
	}
	if port == smtpsPort {
		conn = tls.Client(conn, config)
	}
	client, err := smtp.NewClient(conn, host)
	if err != nil {
		return mailFailure("greet the mail server", err)
	}
	defer client.Close()
	if ok, _ := client.Extension("STARTTLS"); ok && port != smtpsPort {
		if err := client.StartTLS(config); err != nil {
			return mailFailure("STARTTLS", err)
		}
	}
	if m.User != "" {
		// PlainAuth refuses to send a password over a connection without TLS.
		if err := client.Auth(smtp.PlainAuth("", m.User, m.Password.Reveal(), host)); err != nil {
			return mailFailure("log in to the mail server", err)
		}
	}
	return m.transfer(client, msg)
}

func (m Mail) transfer(client *smtp.Client, msg message) error {
	from, err := mail.ParseAddress(m.From)
	if err != nil {
		return &failure{reason: "--smtp-from is no address", permanent: true}
	}
	if err := client.Mail(from.Address); err != nil {
		return mailFailure("the mail server refused the sender", err)
	}
	if err := client.Rcpt(msg.subscription.Endpoint); err != nil {
		return mailFailure("the mail server refused the receiver", err)
	}
	w, err := client.Data()
	if err == nil {
		if _, err = w.Write(mailText(from, msg)); err == nil {
			err = w.Close()
		}
	}
	if err != nil {
		return mailFailure("the mail server refused the mail", err)
	}
	_ = client.Quit() // it has the mail
	return nil
}

// mailFailure: codes from 500 on are for ever.
func mailFailure(doing string, err error) error {
	reply, ok := errors.AsType[*textproto.Error](err)
	return &failure{reason: doing + ": " + err.Error(), permanent: ok && reply.Code >= 500}
}

// mailText is the mail with its head.
func mailText(from *mail.Address, m message) []byte {
	var b bytes.Buffer
	head := func(name, value string) { b.WriteString(name + ": " + value + mailLineStop) }
	subject, body := m.Subject, m.Message
	_, domain, _ := strings.Cut(from.Address, "@")
	head("From", from.String())
	head("To", (&mail.Address{Address: m.subscription.Endpoint}).String())
	head("Date", time.Now().UTC().Format(time.RFC1123Z))
	head("Message-ID", "<"+m.MessageID+"."+string(m.subscription.ID)+"@"+domain+">") // the same of one that is sent again
	switch {
	case m.Type == typeConfirmation:
		subject = "Subscription Confirmation"
		body = "You have chosen to subscribe to the topic\n" + m.TopicARN + "\n\nTo confirm this subscription, open this link:\n" + m.SubscribeURL +
			"\n\nIf this was not you, ignore this mail: nothing else is sent before.\n"
	case m.Type == typeEnded:
		subject = "Unsubscribe Confirmation"
		body = "Your subscription to the topic\n" + m.TopicARN + "\nhas ended.\n\nTo get its notifications again, open this link within three days:\n" + m.SubscribeURL + "\n"
	case m.subscription.Protocol == "email-json":
		body = string(marshal(m.document))
	default:
		body += "\n\n--\nTo end this subscription, open this link:\n" + m.UnsubscribeURL + "\n"
	}
	if subject == "" {
		subject = "Notification of " + m.topic.Name
		if name := m.topic.Settings["DisplayName"]; name != "" {
			subject = name
		}
	}
	head("Subject", mime.QEncoding.Encode("utf-8", subject))
	if m.UnsubscribeURL != "" {
		head("List-Unsubscribe", "<"+m.UnsubscribeURL+">")
	}
	head("Auto-Submitted", "auto-generated")
	head("MIME-Version", "1.0")
	head("Content-Type", "text/plain; charset=utf-8")
	head("Content-Transfer-Encoding", "quoted-printable")
	b.WriteString(mailLineStop)
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(body)) // into memory
	_ = w.Close()
	return b.Bytes()
}

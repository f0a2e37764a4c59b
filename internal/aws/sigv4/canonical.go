package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// canonicalRequest is the text that the client hashed and signed.
func canonicalRequest(r *http.Request, query url.Values, c *claim, payloadHash string) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n")
	b.WriteString(canonicalPath(r.URL, c.service) + "\n")
	b.WriteString(canonicalQuery(query) + "\n")
	for _, name := range c.signedHeaders {
		b.WriteString(name + ":" + canonicalHeader(r, name) + "\n")
	}
	b.WriteString("\n" + strings.Join(c.signedHeaders, ";") + "\n" + payloadHash)
	return b.String()
}

// canonicalPath escapes the path as sent once more; S3 alone signs it as sent.
func canonicalPath(u *url.URL, service string) string {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if service == "s3" {
		return path
	}
	return escape(path, true)
}

// canonicalQuery sorts the escaped pairs, without the signature itself.
func canonicalQuery(query url.Values) string {
	var pairs []string
	for key, values := range query {
		if key == "X-Amz-Signature" {
			continue
		}
		for _, value := range values {
			pairs = append(pairs, escape(key, false)+"="+escape(value, false))
		}
	}
	// A '=' sorts after the digits and before the letters, so compare the halves.
	slices.SortFunc(pairs, func(a, b string) int {
		aKey, aValue, _ := strings.Cut(a, "=")
		bKey, bValue, _ := strings.Cut(b, "=")
		if n := strings.Compare(aKey, bKey); n != 0 {
			return n
		}
		return strings.Compare(aValue, bValue)
	})
	return strings.Join(pairs, "&")
}

// canonicalHeader joins the values of a header and folds their spaces. net/http
// moves Host out of the header map, and may do the same with Content-Length.
func canonicalHeader(r *http.Request, name string) string {
	values := r.Header.Values(name)
	switch {
	case name == "host":
		values = []string{r.Host}
	case name == "content-length" && len(values) == 0:
		values = []string{strconv.FormatInt(r.ContentLength, 10)}
	}
	folded := make([]string, len(values))
	for i, value := range values {
		folded[i] = strings.Join(strings.FieldsFunc(strings.TrimSpace(value), isSpace), " ")
	}
	return strings.Join(folded, ",")
}

// isSpace leaves tabs alone inside a value, as the specification does.
func isSpace(c rune) bool { return c == ' ' }

// escape is RFC 3986's: everything but letters, digits, "-._~" becomes %XX.
func escape(s string, keepSlash bool) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			c == '-', c == '.', c == '_', c == '~', c == '/' && keepSlash:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

// sign computes the signature that the claim should carry.
func sign(secret string, c *claim, canonical string) string {
	hash := sha256.Sum256([]byte(canonical))
	toSign := fmt.Sprintf("%s\n%s\n%s\n%x", algorithm, c.timestamp, c.scope(), hash)
	key := []byte("AWS4" + secret)
	for _, part := range []string{c.date, c.region, c.service, c.terminator, toSign} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return hex.EncodeToString(key)
}

package blob

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
)

// LocationError says which part of a location is wrong, and why.
type LocationError struct{ Location, Part, Why string }

func (e *LocationError) Error() string {
	return fmt.Sprintf("backup location %q: %s: %s", e.Location, e.Part, e.Why)
}

// location is a folder, or a place in S3.
type location struct {
	folder string // absolute, or "" for S3

	bucket, prefix string
	endpoint       string // base URL, "" for AWS
	region         string
	profile        string // in the AWS files
	virtual        bool   // the bucket is in the host name although there is an endpoint
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// parseLocation understands an absolute path and
// s3://bucket/prefix?endpoint=…&region=…&profile=…&style=….
func parseLocation(text string) (location, error) {
	bad := func(part, why string, args ...any) (location, error) {
		return location{}, &LocationError{text, part, fmt.Sprintf(why, args...)}
	}
	if strings.HasPrefix(text, "/") {
		if clean := filepath.Clean(text); clean != "/" {
			return location{folder: clean}, nil
		}
		return bad("folder", "the root folder cannot be a repository")
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3" {
		return bad("scheme", "it must be an absolute folder (/…) or s3://bucket/prefix")
	}
	if u.User != nil {
		text = "s3://…@" + u.Host // not to repeat the secret
		return bad("user", "keys do not belong in a location; they come from the environment (AWS_ACCESS_KEY_ID, …) or the AWS files (profile=…)")
	}
	if !bucketName.MatchString(u.Host) {
		return bad("bucket", "%q is not the name of a bucket (3-63 of a-z 0-9 . -)", u.Host)
	}
	if u.Fragment != "" {
		return bad("fragment", "fragments (#…) are not allowed")
	}
	loc := location{bucket: u.Host, prefix: strings.Trim(u.Path, "/")}
	if loc.prefix != "" {
		if err := CheckName(loc.prefix); err != nil {
			return bad("prefix", "%v", err)
		}
	}
	return loc, parseParameters(text, u.RawQuery, &loc)
}

func parseParameters(text, query string, loc *location) error {
	bad := func(part, why string, args ...any) error {
		return &LocationError{text, "parameter " + part, fmt.Sprintf(why, args...)}
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return bad("list", "%v", err)
	}
	for key, all := range values {
		if len(all) != 1 || all[0] == "" {
			return bad(key, "give it one value, once")
		}
		switch value := all[0]; key {
		case "endpoint":
			if err := checkEndpoint(value); err != nil {
				return bad(key, "%v", err)
			}
			loc.endpoint = strings.TrimSuffix(value, "/")
		case "region":
			loc.region = value
		case "profile":
			loc.profile = value
		case "style":
			if value != "path" && value != "virtual" {
				return bad(key, "unknown style %q; use path or virtual", value)
			}
			loc.virtual = value == "virtual"
		default:
			return bad(key, "the known options are endpoint, region, profile and style")
		}
	}
	if values.Has("style") && loc.endpoint == "" {
		return bad("style", "it needs an endpoint")
	}
	// Stores that are not AWS rarely care, but a signature needs one.
	if loc.region == "" && loc.endpoint != "" {
		loc.region = "us-east-1"
	}
	return nil
}

func checkEndpoint(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("invalid URL %q; example: https://host:9000", text)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return fmt.Errorf("it may have a scheme, a host and a port only")
	}
	return nil
}

func (l location) String() string {
	if l.folder != "" {
		return l.folder
	}
	return strings.TrimSuffix("s3://"+l.bucket+"/"+l.prefix, "/")
}

//go:build integration

package integration

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// failing is a statement that the engine writes an error about, and its words.
var failing = map[string][2]string{
	"postgres": {"SELECT no_such_column_4711", "no_such_column_4711"},
	"mariadb":  {"", "ready for connections"},
}

func TestErrorLogsOverTheAPI(t *testing.T) {
	s := shared(t)
	s.EachEngine(t, func(t *testing.T, engine string) {
		i := s.MustCreate(t, harness.Request("logged-"+engine, engine))
		if failing[engine][0] != "" {
			if i.Open(t).Exec(t.Context(), failing[engine][0]) == nil {
				t.Error("the statement did not fail")
			}
		}
		harness.Wait(t, backTime, "the engine's words are in a log file", func() string {
			files, err := s.DescribeDBLogFiles(t.Context(), &rds.DescribeDBLogFilesInput{DBInstanceIdentifier: aws.String(i.Name)})
			if err != nil {
				return err.Error()
			}
			seen := ""
			for _, f := range files.DescribeDBLogFiles {
				portion, err := s.DownloadDBLogFilePortion(t.Context(), &rds.DownloadDBLogFilePortionInput{
					DBInstanceIdentifier: aws.String(i.Name), LogFileName: f.LogFileName, Marker: aws.String("0"),
				})
				if err != nil {
					return err.Error()
				}
				if strings.Contains(aws.ToString(portion.LogFileData), failing[engine][1]) {
					return ""
				}
				seen += aws.ToString(f.LogFileName) + ":\n" + aws.ToString(portion.LogFileData)
			}
			return seen
		})
		i.Delete(t)
	})
}

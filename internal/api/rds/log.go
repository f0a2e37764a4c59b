package rds

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/control"
)

// logRows are the actions on log files.
func (s *Service) logRows() []row {
	return []row{
		api.Read("DescribeDBLogFiles", s.describeDBLogFiles),
		api.Read("DownloadDBLogFilePortion", s.downloadDBLogFilePortion),
	}
}

func (s *Service) describeDBLogFiles(ctx context.Context, in *rds.DescribeDBLogFilesInput) (*rds.DescribeDBLogFilesOutput, error) {
	if _, err := filterValues(in.Filters); err != nil {
		return nil, err
	}
	filter := control.LogFilter{Contains: str(in.FilenameContains), LargerThan: in.FileSize}
	if in.FileLastWritten != nil {
		filter.WrittenSince = time.UnixMilli(*in.FileLastWritten)
	}
	list, err := s.c.LogFiles(ctx, str(in.DBInstanceIdentifier), filter)
	if err != nil {
		return nil, err
	}
	list, marker, err := page(list, func(f kurabe.LogFile) string { return f.Name }, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	files := mapped(list, func(f kurabe.LogFile) types.DescribeDBLogFilesDetails {
		return types.DescribeDBLogFilesDetails{
			LogFileName: aws.String(f.Name), Size: aws.Int64(f.SizeBytes), LastWritten: aws.Int64(f.LastWritten.UnixMilli()),
		}
	})
	return &rds.DescribeDBLogFilesOutput{DescribeDBLogFiles: files, Marker: marker}, nil
}

func (s *Service) downloadDBLogFilePortion(ctx context.Context, in *rds.DownloadDBLogFilePortionInput) (*rds.DownloadDBLogFilePortionOutput, error) {
	p, err := s.c.LogPortion(ctx, str(in.DBInstanceIdentifier), str(in.LogFileName), str(in.Marker), number(in.NumberOfLines))
	if err != nil {
		return nil, err
	}
	return &rds.DownloadDBLogFilePortionOutput{LogFileData: aws.String(p.Data), Marker: aws.String(p.Marker), AdditionalDataPending: aws.Bool(p.More)}, nil
}

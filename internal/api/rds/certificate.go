package rds

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/api"
	"kurabe/internal/control"
)

// certificateRows are the actions on certificate authorities.
func (s *Service) certificateRows() []row {
	return []row{api.Read("DescribeCertificates", s.describeCertificates)}
}

func (s *Service) describeCertificates(_ context.Context, in *rds.DescribeCertificatesInput) (*rds.DescribeCertificatesOutput, error) {
	if _, err := filterValues(in.Filters); err != nil {
		return nil, err
	}
	list, err := s.c.Certificates(str(in.CertificateIdentifier))
	if err != nil {
		return nil, err
	}
	list, marker, err := page(list, func(a control.Authority) string { return a.Identifier }, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	return &rds.DescribeCertificatesOutput{
		Certificates: mapped(list, s.certificate), Marker: marker,
		DefaultCertificateForNewLaunches: aws.String(s.c.Authority.Identifier),
	}, nil
}

func (s *Service) certificate(a control.Authority) types.Certificate {
	return types.Certificate{
		CertificateIdentifier: aws.String(a.Identifier), CertificateType: aws.String("CA"), Thumbprint: aws.String(a.Thumbprint),
		ValidFrom: aws.Time(a.NotBefore), ValidTill: aws.Time(a.NotAfter), CustomerOverride: aws.Bool(false),
		CertificateArn: aws.String(s.c.ARN("cert", a.Identifier)),
	}
}

package target

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/lab/study"
)

// shape is what a variant's instance is made of; zero values leave it to the service.
type shape struct {
	class, storage string
	iops, gib      int
}

// orderable is a class with a storage type that the service offers.
type orderable struct {
	storage          string
	gibMin, gibMax   int
	iops             bool // may be provisioned
	iopsMin, iopsMax int
	iopsPerGiB       float64
	activityStreams  bool
}

// Classes that are taken when none is named, best first. Amazon's small ones are none:
// their credits run out during a study. Others' have no credits, and two instances are
// there for a moment between two trials, so a host of 16 GiB should do.
var (
	classesFar  = []string{"db.m6i.large", "db.m5.large", "db.m6g.large", "db.m7g.large", "db.t3.medium"}
	classesNear = []string{"db.t3.medium", "db.local.medium", "db.t3.small", "db.local.small", "db.t3.micro", "db.local.micro"}
)

const (
	// storageGiB is that of variants that name none, where the data fits three times:
	// itself, its log and what a change of a table writes anew.
	storageGiB  = 20
	storageRoom = 3
	// storageProvisioned is the type of a variant that names IOPS alone, as published.
	storageProvisioned = "io1"
	// gp3 below this size has fixed figures, with PostgreSQL, MariaDB and MySQL alike.
	gp3Free, gp3IOPS = 400, 3000
)

// offered are the orderables of a class.
func (t *rdsTarget) offered(ctx context.Context, class string) ([]orderable, error) {
	if list, ok := t.offers[class]; ok {
		return list, nil
	}
	v, err := t.version(ctx)
	if err != nil {
		return nil, err
	}
	list := []orderable{}
	in := &rds.DescribeOrderableDBInstanceOptionsInput{Engine: v.Engine, EngineVersion: v.EngineVersion, DBInstanceClass: aws.String(class)}
	for range pagesMax {
		out, err := t.client.DescribeOrderableDBInstanceOptions(ctx, in)
		if err != nil {
			return nil, explain("ask what can be had of class "+class, err)
		}
		for _, o := range out.OrderableDBInstanceOptions {
			list = append(list, orderable{
				storage: aws.ToString(o.StorageType), gibMin: int(aws.ToInt32(o.MinStorageSize)), gibMax: int(aws.ToInt32(o.MaxStorageSize)),
				iops: aws.ToBool(o.SupportsIops), iopsMin: int(aws.ToInt32(o.MinIopsPerDbInstance)), iopsMax: int(aws.ToInt32(o.MaxIopsPerDbInstance)),
				iopsPerGiB: aws.ToFloat64(o.MaxIopsPerGib), activityStreams: len(o.SupportedActivityStreamModes) > 0,
			})
		}
		if in.Marker = out.Marker; aws.ToString(in.Marker) == "" {
			break
		}
	}
	t.offers[class] = list
	return list, nil
}

// class is that of variants that name none.
func (t *rdsTarget) class(ctx context.Context) (string, error) {
	candidates := classesNear
	if t.kind == KindRDS {
		candidates = classesFar
	}
	if t.options.Class != "" {
		candidates = []string{t.options.Class}
	}
	for _, class := range candidates {
		list, err := t.offered(ctx, class)
		if err != nil {
			return "", err
		}
		if len(list) > 0 {
			t.options.Class = class
			return class, nil
		}
	}
	return "", fmt.Errorf("the service offers none of the classes %v for %s here: name another one with --class", candidates, t.options.Engine)
}

// shape works out a variant's instance, or why it cannot be had.
func (t *rdsTarget) shape(ctx context.Context, v study.Variant, gib int) (s shape, why string, err error) {
	s = shape{class: v.Class, storage: v.StorageType, iops: v.IOPS, gib: v.StorageGiB}
	if s.class == "" {
		if s.class, err = t.class(ctx); err != nil {
			return s, "", err
		}
	}
	if s.storage == "" && s.iops > 0 {
		s.storage = storageProvisioned
	}
	list, err := t.offered(ctx, s.class)
	if err != nil {
		return s, "", err
	}
	if len(list) == 0 {
		return s, fmt.Sprintf("class %s is not offered for %s here", s.class, t.options.Engine), nil
	}
	if s.storage == "" {
		if s.gib == 0 {
			s.gib = gib
		}
		return s, "", nil
	}
	for _, o := range list {
		if o.storage == s.storage {
			return fit(s, o, gib)
		}
	}
	return s, fmt.Sprintf("storage type %s is not offered with class %s here", s.storage, s.class), nil
}

// fit completes a shape with a storage type, or says why it does not fit.
func fit(s shape, o orderable, gib int) (shape, string, error) {
	if s.gib == 0 {
		s.gib = max(gib, o.gibMin)
		if s.iops > 0 && o.iopsPerGiB > 0 {
			s.gib = max(s.gib, int(math.Ceil(float64(s.iops)/o.iopsPerGiB)))
		}
	}
	switch {
	case o.gibMin > 0 && s.gib < o.gibMin || o.gibMax > 0 && s.gib > o.gibMax:
		return s, fmt.Sprintf("storage type %s has from %d to %d GiB, not %d", s.storage, o.gibMin, o.gibMax, s.gib), nil
	case s.iops == 0 && strings.HasPrefix(s.storage, "io"):
		return s, fmt.Sprintf("storage type %s needs a number of IOPS", s.storage), nil
	case s.iops == 0:
		return s, "", nil
	case !o.iops:
		return s, fmt.Sprintf("IOPS of storage type %s cannot be chosen", s.storage), nil
	case s.iops < o.iopsMin || o.iopsMax > 0 && s.iops > o.iopsMax:
		return s, fmt.Sprintf("storage type %s has from %d to %d IOPS, not %d", s.storage, o.iopsMin, o.iopsMax, s.iops), nil
	case o.iopsPerGiB > 0 && float64(s.iops) > o.iopsPerGiB*float64(s.gib):
		return s, fmt.Sprintf("storage type %s has at most %g IOPS a GiB, and %d of %d GiB are more", s.storage, o.iopsPerGiB, s.iops, s.gib), nil
	case s.storage == "gp3" && s.gib < gp3Free && s.iops != gp3IOPS:
		return s, fmt.Sprintf("storage type gp3 below %d GiB has %d IOPS, not %d", gp3Free, gp3IOPS, s.iops), nil
	}
	return s, "", nil
}

// room is the storage of variants that name none.
func (t *rdsTarget) room(s *study.Study) int {
	if t.options.StorageGiB > 0 {
		return t.options.StorageGiB
	}
	return max(storageGiB, int(storageRoom*dataBytes(s)>>30)+1)
}

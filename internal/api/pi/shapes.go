package pi

import "time"

// The inputs and outputs, with botocore's names.
type (
	GetResourceMetricsInput struct {
		ServiceType, Identifier *string
		MetricQueries           []MetricQuery
		StartTime, EndTime      *time.Time
		PeriodInSeconds         *int32
		MaxResults              *int32
		NextToken               *string
		PeriodAlignment         *string
	}
	MetricQuery struct {
		Metric  *string
		GroupBy *DimensionGroup
		Filter  map[string]string
	}
	DimensionGroup struct {
		Group      *string
		Dimensions []string
		Limit      *int32
	}
	GetResourceMetricsOutput struct {
		AlignedStartTime, AlignedEndTime *time.Time
		Identifier                       *string
		MetricList                       []MetricKeyDataPoints
		NextToken                        *string
	}
	MetricKeyDataPoints struct {
		Key        *ResponseResourceMetricKey
		DataPoints []DataPoint
	}
	ResponseResourceMetricKey struct {
		Metric     *string
		Dimensions map[string]string
	}
	DataPoint struct {
		Timestamp *time.Time
		Value     *float64
	}

	DescribeDimensionKeysInput struct {
		ServiceType, Identifier *string
		StartTime, EndTime      *time.Time
		Metric                  *string
		PeriodInSeconds         *int32
		GroupBy, PartitionBy    *DimensionGroup
		AdditionalMetrics       []string
		Filter                  map[string]string
		MaxResults              *int32
		NextToken               *string
	}
	DescribeDimensionKeysOutput struct {
		AlignedStartTime, AlignedEndTime *time.Time
		PartitionKeys                    []ResponsePartitionKey
		Keys                             []DimensionKeyDescription
		NextToken                        *string
	}
	ResponsePartitionKey    struct{ Dimensions map[string]string }
	DimensionKeyDescription struct {
		Dimensions        map[string]string
		Total             *float64
		AdditionalMetrics map[string]float64
		Partitions        []float64
	}

	GetDimensionKeyDetailsInput struct {
		ServiceType, Identifier, Group, GroupIdentifier *string
		RequestedDimensions                             []string
	}
	GetDimensionKeyDetailsOutput struct{ Dimensions []DimensionKeyDetail }
	DimensionKeyDetail           struct{ Value, Dimension, Status *string }

	GetResourceMetadataInput  struct{ ServiceType, Identifier *string }
	GetResourceMetadataOutput struct {
		Identifier *string
		Features   map[string]FeatureMetadata
	}
	FeatureMetadata struct{ Status *string }

	ListAvailableResourceDimensionsInput struct {
		ServiceType, Identifier *string
		Metrics                 []string
		MaxResults              *int32
		NextToken               *string
		AuthorizedActions       []string
	}
	ListAvailableResourceDimensionsOutput struct {
		MetricDimensions []MetricDimensionGroups
		NextToken        *string
	}
	MetricDimensionGroups struct {
		Metric *string
		Groups []DimensionGroupDetail
	}
	DimensionGroupDetail struct {
		Group      *string
		Dimensions []DimensionDetail
	}
	DimensionDetail struct{ Identifier *string }

	ListAvailableResourceMetricsInput struct {
		ServiceType, Identifier *string
		MetricTypes             []string
		NextToken               *string
		MaxResults              *int32
	}
	ListAvailableResourceMetricsOutput struct {
		Metrics   []ResponseResourceMetric
		NextToken *string
	}
	ResponseResourceMetric struct{ Metric, Description, Unit *string }
)

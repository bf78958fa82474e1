resource "aiven_kafka_topic" "ledger" {
  service_name = aiven_kafka.events.service_name
  topic_name   = "ledger"
  partitions   = 3
  replication  = 2
  config {
    min_insync_replicas = 1
  }
}

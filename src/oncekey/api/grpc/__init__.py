"""The API over gRPC, from `oncekey.proto`. What lives here needs the extra `grpc`."""

# A receiver of OTLP over HTTP, in JSON, that parses with OpenTelemetry's own definitions.
import base64, http.server, json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


def with_base64_ids(value):
    # OTLP writes ids in hexadecimal digits, where protobuf's JSON has Base64.
    if isinstance(value, dict):
        for key, part in value.items():
            if key in ("traceId", "spanId", "parentSpanId"):
                value[key] = base64.b64encode(bytes.fromhex(part)).decode()
            else:
                with_base64_ids(part)
    elif isinstance(value, list):
        for part in value:
            with_base64_ids(part)
    return value


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json"
        request = json_format.ParseDict(with_base64_ids(json.loads(body)), ExportTraceServiceRequest())
        for resource in request.resource_spans:
            names = {a.key: a.value.string_value for a in resource.resource.attributes}
            assert names["service.name"] == "codexec", names
            for scope in resource.scope_spans:
                for span in scope.spans:
                    assert len(span.trace_id) == 16 and len(span.span_id) == 8
                    assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
                    print(json.dumps({
                        "name": span.name,
                        "kind": Span.SpanKind.Name(span.kind),
                        "trace": span.trace_id.hex(),
                        "span": span.span_id.hex(),
                        "parent": span.parent_span_id.hex(),
                        "attributes": {a.key: a.value.string_value for a in span.attributes},
                        "authorization": self.headers["Authorization"],
                    }), flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()

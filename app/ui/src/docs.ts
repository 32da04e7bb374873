// The page that shows the OpenAPI document, drawn by Swagger UI.
import type { Session } from "./answers";
import { get } from "./service";

interface TriedRequest {
  method?: string;
  headers: Record<string, string>;
}

declare function SwaggerUIBundle(options: object): void;

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  // otherwise Swagger UI sends the document's address to a service of its makers
  validatorUrl: null,
  requestInterceptor: withToken,
});

/** What a signed-in browser changes needs the session's token beside its cookie. */
async function withToken(request: TriedRequest): Promise<TriedRequest> {
  if (request.method === undefined || request.method === "GET") return request;
  const { csrf } = await get<Session>("session");
  if (csrf !== null) request.headers["X-CSRF-Token"] = csrf;
  return request;
}

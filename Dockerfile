FROM python:3.11.13-slim-bookworm AS build

ENV UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_PROJECT_ENVIRONMENT=/opt/itan \
    UV_PYTHON_DOWNLOADS=never

RUN pip install --no-cache-dir uv==0.13.9

WORKDIR /src
# first the packages, pinned by pyproject.toml: a change of the code alone leaves this layer in the cache
COPY pyproject.toml README.md LICENSE ./
RUN uv sync --no-cache --no-default-groups --extra archive --no-install-project

COPY core core
COPY bench bench
COPY client client
COPY app app
RUN uv sync --no-cache --no-default-groups --extra archive --no-editable


FROM python:3.11.13-slim-bookworm

RUN install -d -o 10001 -g 10001 /data
COPY --from=build /opt/itan /opt/itan

# to listen beyond loopback, set ITAN_API_KEYS, or ITAN_ALLOW_OPEN=true if no stranger can reach the port
ENV PATH=/opt/itan/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OPENBLAS_NUM_THREADS=1 \
    OMP_NUM_THREADS=1 \
    MKL_NUM_THREADS=1 \
    ITAN_HOST=0.0.0.0 \
    ITAN_PORT=8000 \
    ITAN_STORE=sqlite:////data/itan.db

USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM

HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import http.client as h, os; c = h.HTTPConnection('127.0.0.1', int(os.environ['ITAN_PORT']), timeout=2); c.request('GET', '/livez'); raise SystemExit(c.getresponse().status != 200)"]

CMD ["itan", "serve"]

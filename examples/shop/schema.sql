-- The shop's own database. Tailrace needs nothing added to it.
CREATE TABLE customers (
    id         bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name       text NOT NULL,
    country    text NOT NULL,
    city       text NOT NULL,
    joined_at  timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE products (
    id          bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name        text NOT NULL,
    description text NOT NULL,
    price       numeric(10,2) NOT NULL,
    stock       integer NOT NULL
);
CREATE TABLE orders (
    id          bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    customer_id bigint NOT NULL,
    product_id  bigint NOT NULL,
    quantity    integer NOT NULL,
    amount      numeric(12,2) NOT NULL,
    status      text NOT NULL,
    placed_at   timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE searches (
    id          bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    customer_id bigint NOT NULL,
    term        text NOT NULL,
    searched_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE clicks (
    id         bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    search_id  bigint NOT NULL,
    product_id bigint NOT NULL,
    clicked_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE tax_rates (
    country text PRIMARY KEY,
    rate    numeric(5,4) NOT NULL
);
CREATE TABLE payments (
    id       bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    order_id bigint NOT NULL,
    card_id  bigint NOT NULL,
    amount   numeric(12,2) NOT NULL,
    paid_at  timestamptz NOT NULL DEFAULT now()
);
-- What devices report: two times by their own clock, one by ours.
CREATE TABLE page_views (
    id          bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    customer_id bigint NOT NULL,
    device      text NOT NULL,
    path        text NOT NULL,
    happened_at timestamptz NOT NULL,
    sent_at     timestamptz NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now()
);
-- What staff want to hear of: searches that reviews are matched against.
CREATE TABLE watches (
    id    bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    owner text NOT NULL,
    query text NOT NULL
);
CREATE INDEX ON payments (order_id);

mod corpus;
mod model;
mod pairs;

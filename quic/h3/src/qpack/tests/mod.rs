mod corpus;
mod pairs;

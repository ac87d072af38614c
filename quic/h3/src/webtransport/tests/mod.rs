mod capsules;
mod dialects;
mod sessions;
